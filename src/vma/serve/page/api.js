/** Requests to the server that this page came from: JSON in, JSON out, errors as sentences. */

export class Refusal extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(`api/${path}`, options);
  } catch {
    throw new Refusal(0, "The server does not answer: is vma serve still running?");
  }
  let body = null;
  try {
    body = await response.json();
  } catch { /* whatever it is, it is not an answer of ours */ }
  if (!response.ok || body === null) {
    throw new Refusal(response.status, body?.error ?? "The server gave no readable answer.");
  }
  return body;
}

export const get = (path) => request(path);

export const post = (path, message = {}) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message) });

export const send = (path, file) =>
  request(path, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });

/**
 * A function that asks for the newest thing only: while one question is under way the next waits, and whatever
 * was waiting before it is dropped. An answer that `cancel` or a newer question has made stale is dropped too.
 */
export function newest(ask, tell, fail, pause = 0) {
  let waiting = null, busy = false, turn = 0;

  async function run() {
    if (busy) return;
    busy = true;
    while (waiting !== null) {
      if (pause) await new Promise((done) => setTimeout(done, pause));
      if (waiting === null) break;
      const question = waiting, mine = turn;
      waiting = null;
      try {
        const answer = await ask(...question);
        if (mine === turn) tell(answer);
      } catch (error) {
        if (mine === turn && error.status === 503) {
          waiting ??= question;
          await new Promise((done) => setTimeout(done, 400));
        } else if (mine === turn) fail(error);
      }
    }
    busy = false;
  }

  const asking = (...question) => { waiting = question; run(); };
  asking.cancel = () => { turn += 1; waiting = null; };
  return asking;
}
