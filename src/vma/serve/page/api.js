/**
 * All that the page asks of the model and its memory, and the only module that knows of a server.
 *
 * To answer elsewhere, such as in the browser itself, put a module with the same functions in its place: each gives
 * a promise, and fails with a `Refusal`. Images that are sent are PNG files as base64; `pixels` are base64 of one
 * byte per pixel, row by row, where 255 is full ink. The fields of every answer are described in `messages.py`.
 */

/** Why there is no answer: one sentence; `busy` means ask again in a moment, `stale` that the memory has changed. */
export class Refusal extends Error {
  constructor(sentence, { busy = false, stale = false } = {}) {
    super(sentence);
    Object.assign(this, { busy, stale });
  }
}

// The memory. All but `saveFile` give it as it is then: { version, model, size, undo, cards: [{ id, label, pixels }] }

export const memory = () => request("memory");

/**
 * Images under one name; those that hold no ink are left out and listed, and what is odd about others is said:
 * { …, refused: [{ image, error }], doubts: [{ image, doubt }] }.
 */
export const remember = (images, label) => post("remember", { images, label, skip: true });

/** Images of the model's own size, kept as they are. */
export const keep = (pixels, label) => post("keep", { pixels, label });

export const examples = () => post("examples");

export const forget = (ids) => post("forget", { ids });

export const rename = (ids, label) => post("rename", { ids, label });

export const undo = (version) => post("undo", { version });

/** Put the memory of a file in the place of this one. */
export const openFile = (file) =>
  request("memory/file", { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });

/** The memory as a Blob. */
export const saveFile = () => request("memory/file", {}, (response) => response.blob());

// Questions

/** { count, temperature }, and a `card` or a `label` or neither → { images: [{ pixels, card }] }. */
export const imagine = (question) => post("imagine", question);

/** { points, seed }, and a `card` or an image's `pixels` → { images: [pixels] }. */
export const vary = (question) => post("vary", question);

/** What the memory makes of an image: a `Reading`. */
export const recognise = (image) => post("recognise", { image });

// Requests

const post = (path, message = {}) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message) });

async function request(path, options = {}, read = (response) => response.json()) {
  let response;
  try {
    response = await fetch(`api/${path}`, options);
  } catch {
    throw new Refusal("The server does not answer: is vma serve still running?");
  }
  const body = await (response.ok ? read(response) : response.json()).catch(() => null);
  if (!response.ok || body === null) throw refusal(response.status, body?.error);
  return body;
}

const refusal = (status, sentence) => new Refusal(sentence ?? "The server gave no readable answer.",
  { busy: status === 503, stale: status === 404 || status === 409 });
