/** A thread that has the networks and the memory, and answers what `page/api.js` asks. */

import { imagine, recognise, text, vary } from "./answers.js";
import { readMemory, written } from "./files.js";
import { Networks } from "./networks.js";
import { usual } from "./novelty.js";
import { inkOf } from "./picture.js";
import { Refusal } from "./refusal.js";
import { Store } from "./store.js";

const opening = Networks.open().then(async (net) => [net, await Store.open(net)]);
const norms = new WeakMap(); // by list of cards: null while one is being worked out

function state(net, { cards, version, past }, { refused = [], doubts = [] } = {}) {
  const [height, width] = net.size;
  return { version, model: `${net.manifest.name}, ${height}×${width} pixels`, size: net.size, undo: past.at(-1)?.what ?? null,
    cards: cards.map(({ id, label, ink }) => ({ id, label, pixels: text(ink) })), refused, doubts };
}

const levels = ({ pixels, page }, coded) => {
  const found = Float32Array.from(atob(coded), (character) => character.charCodeAt(0) / 255);
  if (found.length !== pixels) throw new Refusal(`Pixels must be ${pixels} bytes.`);
  return page.binarize ? found.map((value) => Number(value >= 0.5)) : found;
};

async function add(net, store, what, label, inks) {
  const made = await store.made(inks.map((ink) => ({ label: label.trim().slice(0, 40), ink })));
  await store.change(what, [...store.cards, ...made]);
}

const answers = {
  memory: (net, store) => state(net, store),

  async remember(net, store, images, label) {
    const inks = [], refused = [], doubts = [];
    for (const [image, png] of images.entries()) {
      try {
        const { ink, doubt } = await inkOf(png, net.size, net.page.binarize);
        inks.push(ink);
        if (doubt) doubts.push({ image, doubt });
      } catch (error) {
        refused.push({ image, error: error.message });
        if (refused.length === images.length) throw error;
      }
    }
    await add(net, store, `add ${label}`, label, inks);
    return state(net, store, { refused, doubts });
  },

  async keep(net, store, pixels, label) {
    await add(net, store, `keep ${label}`, label, pixels.map((each) => levels(net, each)));
    return state(net, store);
  },

  async examples(net, store) {
    const items = net.page.examples.map(({ label, pixels }) => ({ label, ink: levels(net, pixels) }));
    await store.change("add examples", [...store.cards, ...(await store.made(items))]);
    return state(net, store);
  },

  async forget(net, store, ids) {
    const gone = new Set(ids.map((id) => store.card(id)));
    await store.change("delete", store.cards.filter((card) => !gone.has(card)));
    return state(net, store);
  },

  async rename(net, store, ids, label) {
    const chosen = new Set(ids.map((id) => store.card(id)));
    await store.change("rename", store.cards.map((card) => (chosen.has(card) ? { ...card, label: label.trim() } : card)));
    return state(net, store);
  },

  async undo(net, store, version) {
    await store.undo(version);
    return state(net, store);
  },

  async openFile(net, store, file) {
    const cards = await store.made(await readMemory(file, net.size));
    await store.change("open a file", cards);
    return state(net, store);
  },

  saveFile: (net, store) => written(net, store.known()),

  imagine(net, store, { count = 16, temperature = 1, card, label, chance }) {
    const chosen = card ? store.card(card) : null;
    const wanted = (each) => (chosen ? each === chosen : label === undefined || label === null || each.label === label);
    if (!store.known().some(wanted)) throw new Refusal(`There is no card of the name ${label}.`, { stale: true });
    return imagine(net, store.cards, wanted, count, temperature, chance);
  },

  vary(net, store, { card, pixels, points, seed = 0 }) {
    return vary(net, card ? store.card(card).ink : levels(net, pixels), points, seed);
  },

  async recognise(net, store, image) {
    const cards = store.known(), { ink } = await inkOf(image, net.size, net.page.binarize);
    if (!norms.has(cards)) {
      norms.set(cards, null);
      setTimeout(() => workOut(net, store, cards));
    }
    return recognise(net, cards, ink, norms.get(cards));
  },
};

/** What is usual among these cards, while they are those of the memory; whoever asks meanwhile is answered first. */
async function workOut(net, store, cards) {
  const pause = () => new Promise((done) => setTimeout(() => done(store.cards === cards)));
  const found = await usual(net, cards, pause);
  if (found === null) norms.delete(cards);
  else norms.set(cards, found);
}

addEventListener("message", async ({ data: { id, name, question } }) => {
  try {
    const [net, store] = await opening;
    postMessage({ id, answer: await answers[name](net, store, ...question) });
  } catch (error) {
    postMessage({ id, error: error.message, busy: false, stale: error.stale ?? false });
  }
});
