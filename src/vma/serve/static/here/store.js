/** The memory of this browser: cards, what they were before, and where they are kept. */

import { Refusal } from "./refusal.js";

const STEPS = 100, ITEMS = 1000;
const newId = () => crypto.getRandomValues(new Uint32Array(2)).join("-");

export class Store {
  constructor(net, shelf) {
    Object.assign(this, { net, shelf, cards: [], past: [], version: crypto.getRandomValues(new Uint32Array(1))[0] });
  }

  /** The cards that were kept here, if there are any. */
  static async open(net) {
    const { manifest: { fingerprint } } = net;
    const store = new Store(net, await shelf().catch(() => null)); // a private window has none
    const kept = await store.shelf?.get(fingerprint).catch(() => null);
    if (kept) store.cards = await store.made(kept);
    return store;
  }

  /** Cards of items { label, ink }. */
  async made(items) {
    const keys = await this.net.keys(items.map(({ ink }) => ink));
    return items.map(({ label, ink }, i) => ({ id: newId(), label, ink, key: keys[i] }));
  }

  known() {
    if (!this.cards.length) throw new Refusal("The memory is empty: remember a drawing first.");
    return this.cards;
  }

  card(id) {
    const found = this.cards.find((card) => card.id === id);
    if (!found) throw new Refusal("This card is not in the memory any more.", { stale: true });
    return found;
  }

  /** Other cards from now on; `what` names the change. */
  async change(what, cards) {
    if (cards.length > ITEMS) throw new Refusal(`The memory holds ${ITEMS} cards at most: delete some first.`);
    this.past = [...this.past, { cards: this.cards, what }].slice(-STEPS);
    await this.turn(cards);
  }

  async undo(version) {
    if (version !== this.version) throw new Refusal("The memory has changed in the meantime: look at it again.", { stale: true });
    if (!this.past.length) throw new Refusal("There is nothing to take back.");
    await this.turn(this.past.pop().cards);
  }

  async turn(cards) {
    this.cards = cards;
    this.version += 1;
    await this.shelf?.put(this.net.manifest.fingerprint, cards.map(({ label, ink }) => ({ label, ink }))).catch(() => null);
  }
}

/** A place of this browser's that lasts: one value for each model. */
async function shelf() {
  const done = (request) => new Promise((found, failed) => {
    request.onsuccess = () => found(request.result);
    request.onerror = () => failed(request.error);
  });
  const opening = indexedDB.open("vma", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("memories");
  const database = await done(opening);
  const memories = (mode) => database.transaction("memories", mode).objectStore("memories");
  return { get: (key) => done(memories("readonly").get(key)), put: (key, value) => done(memories("readwrite").put(value, key)) };
}
