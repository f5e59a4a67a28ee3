/**
 * All that the page asks of the model and its memory, answered in the browser itself, by a thread of its own.
 *
 * The functions are those of the module that asks a server; nothing is sent anywhere.
 */

import { Refusal } from "../here/refusal.js";

export { Refusal };

const worker = new Worker(new URL("../here/worker.js", import.meta.url), { type: "module" });
const waiting = new Map();
let last = 0;

worker.addEventListener("message", ({ data: { id, answer, error, ...why } }) => {
  const { done, failed } = waiting.get(id);
  waiting.delete(id);
  if (error === undefined) done(answer);
  else failed(new Refusal(error, why));
});

const ask = (name, ...question) => new Promise((done, failed) => {
  last += 1;
  waiting.set(last, { done, failed });
  worker.postMessage({ id: last, name, question });
});

export const memory = () => ask("memory");
export const remember = (images, label) => ask("remember", images, label);
export const keep = (pixels, label) => ask("keep", pixels, label);
export const examples = () => ask("examples");
export const forget = (ids) => ask("forget", ids);
export const rename = (ids, label) => ask("rename", ids, label);
export const undo = (version) => ask("undo", version);
export const openFile = (file) => ask("openFile", file);
export const saveFile = () => ask("saveFile");
export const imagine = (question) => ask("imagine", question);
export const vary = (question) => ask("vary", question);
export const recognise = (image) => ask("recognise", image);
