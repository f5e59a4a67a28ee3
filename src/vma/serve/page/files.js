/** Image files and saved memories, chosen or dropped: one name is asked for all images together. */

import { decode, readImage } from "./pixels.js";
import { listed, number } from "./words.js";

const MOST = 64, BYTES = 6 * 2 ** 20; // of one request
const element = (id) => document.getElementById(id);

/** `remember(images, name)` gives the memory as it is then, or null where it failed; `open(file)` opens one. */
export function listenForFiles({ remember, open, say }) {
  const take = (files) => takeFiles([...files], { remember, open, say });
  for (const [button, input] of [["choose-images", "images"], ["open", "memory-file"]]) {
    element(button).addEventListener("click", () => element(input).click());
    element(input).addEventListener("change", async () => {
      const files = [...element(input).files];
      element(input).value = "";
      await take(files);
    });
  }
  element("ask-cancel").addEventListener("click", () => element("ask").close(""));
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
    take(event.dataTransfer.files);
  });
}

async function takeFiles(files, { remember, open, say }) {
  const isMemory = (file) => file.name.endsWith(".safetensors");
  const memory = files.find(isMemory);
  if (memory) await open(memory);
  const images = files.filter((file) => !isMemory(file));
  if (images.length) await takeImages(images, remember, say);
}

async function takeImages(files, remember, say) {
  const read = [], failed = [];
  for (const file of files) {
    try {
      read.push({ file, bitmap: await decode(file) });
    } catch {
      failed.push(file.name);
    }
  }
  const name = read.length ? await askName(read, failed) : null;
  if (read.length && !name) return;
  const kept = [], odd = [];
  for (const batch of batches(read.map(({ file, bitmap }) => ({ file, image: readImage(bitmap) })))) {
    const state = await remember(batch.map(({ image }) => image), name);
    if (state === null) return; // it has been said why
    const blank = new Set(state.refused.map(({ image }) => image));
    batch.forEach(({ file }, i) => (blank.has(i) ? failed : kept).push(file.name));
    odd.push(...state.doubts.map(({ image, doubt }) => `${batch[image].file.name} (${doubt})`));
  }
  say(outcome(kept.length, failed, odd), kept.length > 0);
}

export function outcome(kept, failed, odd) {
  const lost = `${failed.length} could not be read: ${listed(failed)}.`;
  const doubt = odd.length ? ` Hardly the drawing of one character: ${listed(odd)}.` : "";
  if (!failed.length) return `${kept} remembered.${doubt}`;
  return kept ? `${kept} remembered, ${lost}${doubt}` : lost;
}

function* batches(images) {
  let batch = [], bytes = 0;
  for (const each of images) {
    if (batch.length && (batch.length === MOST || bytes + each.image.length > BYTES)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(each);
    bytes += each.image.length;
  }
  if (batch.length) yield batch;
}

/** The name for all of them, or an empty one where nobody wants to give any. */
function askName(read, failed) {
  const dialog = element("ask");
  element("ask-title").textContent = read.length === 1 ? "What is it?" : `One name for ${number(read.length, "image")}`;
  element("ask-line").textContent = failed.length ? `${failed.length} could not be read: ${listed(failed)}.`
    : "Images of one name are drawings of the same character.";
  element("ask-images").replaceChildren(...read.slice(0, 12).map(({ bitmap }) => thumbnail(bitmap)));
  element("ask-name").value = element("name").value || stem(read.map(({ file }) => file.name));
  dialog.returnValue = "";
  dialog.showModal();
  element("ask-name").select();
  return new Promise((done) => dialog.addEventListener("close", () => {
    done(dialog.returnValue === "keep" ? element("ask-name").value.trim() : "");
  }, { once: true }));
}

/** What all names begin with, without numbers at its end. */
function stem(names) {
  const [first, ...others] = names.map((name) => name.replace(/\.[^.]*$/, ""));
  let length = first.length;
  for (const name of others) while (!name.startsWith(first.slice(0, length))) length -= 1;
  return (others.length ? first.slice(0, length).replace(/[\s\d_.-]+$/, "") : first).slice(0, 40);
}

function thumbnail(bitmap) {
  const canvas = Object.assign(document.createElement("canvas"), { width: 96, height: 96 });
  const scale = 96 / Math.max(bitmap.width, bitmap.height);
  const [width, height] = [bitmap.width * scale, bitmap.height * scale];
  canvas.getContext("2d").drawImage(bitmap, (96 - width) / 2, (96 - height) / 2, width, height);
  return canvas;
}
