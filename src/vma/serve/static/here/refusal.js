/** Why there is no answer, as `page/api.js` tells it. */
export class Refusal extends Error {
  constructor(sentence, { busy = false, stale = false } = {}) {
    super(sentence);
    Object.assign(this, { busy, stale });
  }
}
