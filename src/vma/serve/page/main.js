/** The page: one memory, one selection, one drawing; every panel shows them. */

import { get, post, send } from "./api.js";
import { Imaginer } from "./imagine.js";
import { MemoryView } from "./memory.js";
import { note } from "./note.js";
import { Pad } from "./pad.js";
import { readImage, setSize } from "./pixels.js";
import { Recogniser } from "./recognise.js";
import { Varier } from "./vary.js";
import { freshName, number } from "./words.js";

const element = (id) => document.getElementById(id);
const fail = (error) => note(error.message);
let version = -1, suggested = null;

const pad = new Pad(element("pad"), () => {
  element("invite").hidden = !pad.empty;
  for (const id of ["keep", "clear", "undo-stroke"]) element(id).disabled = pad.empty;
  recogniser.refresh();
});
const view = new MemoryView(element("groups"), { selected, forget, rename });
const recogniser = new Recogniser(pad, view, fail, suggest);
const imaginer = new Imaginer(view, fail);
const varier = new Varier(fail);

// The memory

function show(state) {
  const first = version < 0;
  version = state.version;
  setSize(state.size);
  element("model").textContent = state.model;
  element("undo").disabled = state.undo === null;
  element("undo").title = state.undo === null ? "" : `Undo: ${state.undo}`;
  element("no-memory").hidden = state.cards.length > 0;
  element("groups").hidden = element("selection").hidden = state.cards.length === 0;
  element("save").hidden = state.cards.length === 0;
  view.show(state.cards);
  if (first) pad.update();
  else recogniser.refresh();
}

/** Change the memory by `request`, show what it is now, and say `sentence`. */
async function change(request, sentence = "") {
  try {
    show(await request);
    if (sentence) note(sentence);
    return true;
  } catch (error) {
    fail(error);
    if (error.status === 404 || error.status === 409) await look();
    return false;
  }
}

/** Show the memory anew if it has changed without this page: in another window, or with another server. */
async function look() {
  const state = await get("memory").catch(() => null);
  if (state !== null && state.version !== version) show(state);
}

async function remember(images, label) {
  const name = label.trim() || suggested || freshName(new Set(view.cards.map((card) => card.label)));
  return change(post("remember", { images, label: name }), `Remembered as ${name}.`);
}

function forget() {
  const cards = view.chosen();
  if (!cards.length) return;
  const inBar = document.activeElement === element("forget");
  change(post("forget", { ids: cards.map((card) => card.id) }), `Deleted ${number(cards.length, "card")}.`)
    .then(() => inBar && element("undo").focus());
}

const undo = () => change(post("undo", { version }), "Taken back.");

// The selection

function selected({ card, label }) {
  const cards = view.chosen(), one = card !== undefined, some = label !== undefined;
  const classes = new Set(view.cards.map((each) => each.label)).size;
  const name = cards[0]?.label ?? "";
  element("what").textContent = one ? `One card of ${name}` : some ? `All of ${name}, ${number(cards.length, "card")}`
    : `Whole memory: ${number(cards.length, "card")}, ${number(classes, "name")}`;
  element("imagine-scope").textContent = one ? `one card of ${name}` : some ? name : "the whole memory";
  element("vary-scope").textContent = cards.length ? `${one ? "this" : "one"} ${name}` : "one card";
  for (const id of ["rename", "whole"]) element(id).hidden = !one && !some;
  element("forget").hidden = cards.length === 0;
  element("forget").textContent = one || some ? "Delete" : "Delete all";
  edit(false);
  varier.show(cards[0]?.id ?? null);
  if (version >= 0) imaginer.refresh();
}

function edit(on) {
  for (const id of ["new-name", "save-name"]) element(id).hidden = !on;
  if (on) {
    for (const id of ["rename", "forget", "whole"]) element(id).hidden = true;
    element("new-name").value = view.chosen()[0].label;
    element("new-name").focus();
    element("new-name").select();
  }
}

function rename() {
  if (view.selection.card !== undefined || view.selection.label !== undefined) edit(true);
}

async function saveName(event) {
  event.preventDefault();
  const ids = view.chosen().map((card) => card.id), label = element("new-name").value.trim();
  const together = view.selection.label !== undefined;
  if (!(await change(post("rename", { ids, label }), `Renamed to ${label}.`))) return;
  if (together) view.choose({ label: view.cards.find((card) => card.id === ids[0]).label });
  view.elements.get(ids[0])?.focus();
}

// The drawing

function suggest(answer) {
  suggested = answer && !answer.novel ? answer.classes[0].label : null;
  element("name").placeholder = suggested ? `${suggested}?` : "Name";
}

async function keep(event) {
  event.preventDefault();
  if (pad.empty) return;
  if (await remember([pad.image()], element("name").value)) {
    pad.clear();
    element("name").value = "";
    element("pad").focus();
  }
}

// Files

async function takeFiles(files) {
  const [memories, images] = [[], []];
  for (const file of files) (file.name.endsWith(".safetensors") ? memories : images).push(file);
  if (memories.length) await change(send("memory/file", memories[0]), `Opened ${memories[0].name}.`);
  const named = element("name").value;
  for (const file of images) {
    try {
      await remember([await readImage(file)], named || file.name.replace(/\.[^.]*$/, "").slice(0, 40));
    } catch {
      note(`${file.name} is not an image that this browser can read.`);
    }
  }
}

function listenForFiles() {
  for (const [button, input] of [["choose-images", "images"], ["open", "memory-file"]]) {
    element(button).addEventListener("click", () => element(input).click());
    element(input).addEventListener("change", async () => {
      await takeFiles([...element(input).files]);
      element(input).value = "";
    });
  }
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    element("drop").hidden = false;
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) element("drop").hidden = true; });
  addEventListener("drop", (event) => {
    element("drop").hidden = true;
    if (!holdsFiles(event)) return;
    event.preventDefault();
    takeFiles([...event.dataTransfer.files]);
  });
}

// Everything together

function listen() {
  const click = (id, action) => element(id).addEventListener("click", action);
  click("undo-stroke", () => pad.undo());
  click("clear", () => pad.clear());
  click("undo", undo);
  click("forget", forget);
  click("rename", rename);
  click("whole", () => view.choose({}));
  for (const id of ["examples", "start"]) click(id, () => change(post("examples"), "Invented characters, three drawings each."));
  element("pen").addEventListener("input", () => { pad.width = Number(element("pen").value); });
  element("remember").addEventListener("submit", keep);
  element("selection").addEventListener("submit", saveName);
  addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=text]");
    if (event.key === "Escape") view.choose(element("new-name").hidden ? {} : view.selection);
    else if (event.key === "z" && (event.ctrlKey || event.metaKey) && !typing && !element("undo").disabled) {
      event.preventDefault();
      undo();
    }
  });
}

listen();
addEventListener("focus", look);
listenForFiles();
change(get("memory"));
