/** The page: one memory, one selection, one drawing; every panel shows them. */

import * as api from "./api.js";
import { Chips } from "./chips.js";
import { listenForFiles } from "./files.js";
import { Imaginer } from "./imagine.js";
import { MemoryView } from "./memory.js";
import { note } from "./note.js";
import { Pad } from "./pad.js";
import { download, setSize } from "./pixels.js";
import { Recogniser } from "./recognise.js";
import { listenForTasks, steps, turnTo, welcome } from "./tasks.js";
import { Varier } from "./vary.js";
import { doubted, freshName, number } from "./words.js";

const element = (id) => document.getElementById(id);
const fail = (error) => note(error.message);
let version = -1, followed = "";

const pad = new Pad(element("pad"), () => {
  element("invite").hidden = !pad.empty;
  for (const id of ["keep", "clear", "undo-stroke"]) element(id).disabled = pad.empty;
  if (pad.empty) chips.forget();
  recogniser.refresh();
});
const chips = new Chips();
const view = new MemoryView(element("groups"), { selected, forget, rename });
const recogniser = new Recogniser(pad, view, (answer) => chips.show(answer, fresh()));
const imaginer = new Imaginer(view, fail, { keep: keepTile, vary: varyTile });
const varier = new Varier(fail, keepTile);

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

/** Change the memory by `request`, show what it is now, and say `sentence`; what it is, or null where it failed. */
async function change(request, sentence = "", undoable = true) {
  try {
    const state = await request;
    show(state);
    if (sentence) note(doubted(sentence, state.doubts), undoable ? undo : null);
    return state;
  } catch (error) {
    fail(error);
    if (error.stale) await look();
    return null;
  }
}

/** Show the memory anew if it has changed without this page: in another window, or with another server. */
async function look() {
  const state = await api.memory().catch(() => null);
  if (state !== null && state.version !== version) show(state);
}

const fresh = () => freshName(new Set(view.cards.map((card) => card.label)));

function forget() {
  const cards = view.chosen();
  if (!cards.length) return;
  const inBar = document.activeElement === element("forget");
  change(api.forget(cards.map((card) => card.id)), `Deleted ${number(cards.length, "card")}.`)
    .then(() => inBar && element("undo").focus());
}

async function save() {
  try {
    download(await api.saveFile(), "memory.safetensors");
  } catch (error) {
    fail(error);
  }
}

const undo = () => change(api.undo(version), "Taken back.", false);

const loadExamples = () => change(api.examples(), "Characters of five scripts, three drawings each.");

// Images that nobody has drawn

function keepTile({ pixels, label }) {
  change(api.keep([pixels], label), `Kept as ${label}.`);
}

function varyTile({ pixels, label }) {
  element("vary-scope").textContent = `an imagined ${label}`;
  varier.show({ pixels, label });
  turnTo("vary");
}

// The selection

function selected({ card, label }) {
  const cards = view.chosen(), one = card !== undefined, some = label !== undefined;
  const classes = new Set(view.cards.map((each) => each.label)).size;
  const name = cards[0]?.label ?? "";
  element("what").textContent = one ? `One card of ${name}` : some ? `All of ${name}, ${number(cards.length, "card")}`
    : `Whole memory: ${number(cards.length, "card")}, ${number(classes, "name")}`;
  element("imagine-scope").textContent = one ? `one card of ${name}` : some ? name : "the whole memory";
  for (const id of ["rename", "whole"]) element(id).hidden = !one && !some;
  element("forget").hidden = cards.length === 0;
  element("forget").textContent = one || some ? "Delete" : "Delete all";
  edit(false);
  if (version < 0) return;
  imaginer.follow();
  const subject = cards.length ? { card: cards[0].id, label: name } : null;
  if (followed === JSON.stringify(subject)) return; // what is being varied stays, if the memory has only grown
  followed = JSON.stringify(subject);
  element("vary-scope").textContent = cards.length ? `${one ? "this" : "one"} ${name}` : "one card";
  varier.show(subject);
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
  if (!(await change(api.rename(ids, label), `Renamed to ${label}.`))) return;
  if (together) view.choose({ label: view.cards.find((card) => card.id === ids[0]).label });
  view.elements.get(ids[0])?.focus();
}

// The drawing

async function keep(event) {
  event.preventDefault();
  if (pad.empty) return;
  const given = element("name").value.trim(), label = given || fresh();
  const sentence = given ? `Remembered as ${label}.` : `Remembered as ${label}, a new name.`;
  if (await change(api.remember([pad.image()], label), sentence)) {
    pad.clear();
    element("name").value = "";
    chips.mark();
    element("pad").focus({ preventScroll: true });
  }
}

// Everything together

function listen() {
  const click = (id, action) => element(id).addEventListener("click", action);
  click("undo-stroke", () => pad.undo());
  click("clear", () => pad.clear());
  click("undo", undo);
  click("save", save);
  click("forget", forget);
  click("rename", rename);
  click("whole", () => view.choose({}));
  for (const id of ["examples", "start"]) click(id, loadExamples);
  click("steps-examples", () => {
    steps(false);
    turnTo("memory");
    loadExamples();
  });
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
listenForTasks();
listenForFiles({
  open: (file) => change(api.openFile(file), `Opened ${file.name}.`),
  remember: (images, label) => change(api.remember(images, label)),
  say: (sentence, undoable) => note(sentence, undoable ? undo : null),
});
change(api.memory()).then(welcome);
