/** Questions to a memory of cards { id, label, ink, key }, answered as `serve/answers.py` does. */

import { mainDirections, anyDirections } from "./directions.js";
import { judge, lookUp } from "./novelty.js";
import { logMeanExp, logSoftmax, logSumExp, normals, pick, source, uniforms } from "./numbers.js";

const PROPOSALS = 16, ALPHA = 0.8, BETA = 0.1, KAPPA = 0.3; // the rule `joined` of fewshot/recognition.py

/** What the memory makes of ink. `norm` is what is usual, or null while that is being worked out. */
export async function recognise(net, cards, ink, norm) {
  const look = lookUp(net, cards, await net.target(ink));
  const log_likelihood = await look.bound();
  const share = sharpened(await combined(net, look), cards);
  const order = cards.map((_, i) => i).sort((one, other) => share[other] - share[one]);
  const best = cards[order[0]], q = await net.encoded(look.target, best.ink);
  const rebuilt = await net.typical(await net.item(best.ink), new Float32Array(net.latent), q);
  return {
    target: text(ink),
    card: best.id,
    reconstruction: text(net.shown(rebuilt)[0]),
    cards: cards.map((card, i) => ({ id: card.id, probability: share[i] })),
    classes: classes(cards, share),
    log_likelihood,
    bits_per_pixel: -log_likelihood / (Math.LN2 * net.pixels),
    novel: norm?.rule ? await judge(look, log_likelihood, norm) : null,
    reason: norm === null ? "what is usual here is being worked out" : norm.reason,
    pending: norm === null,
    kl_a: look.divergence(),
    kl_z: look.kl,
  };
}

/** p(a|x) by q(a|x) and the likelihood of the cards that it proposes. */
async function combined(net, { logQ, logP, cards, target }) {
  const proposed = logQ.map((_, i) => i).sort((one, other) => logQ[other] - logQ[one]).slice(0, PROPOSALS);
  const pooled = [];
  for (const i of proposed) {
    const { logs } = await net.weights(target, cards[i].ink, Float32Array.from(net.page.draws));
    pooled.push(ALPHA * logQ[i] + BETA * (logP[i] + logMeanExp(logs)));
  }
  const mass = logSumExp(proposed.map((i) => logQ[i])), found = logQ.map(Math.exp);
  logSoftmax(pooled).forEach((value, i) => { found[proposed[i]] = Math.exp(value + mass); });
  return found;
}

function masses(cards, share) {
  const sums = new Map();
  cards.forEach(({ label }, i) => sums.set(label, (sums.get(label) ?? 0) + share[i]));
  return sums;
}

/** To the power γ between classes, as before within one. */
function sharpened(share, cards) {
  const sums = masses(cards, share), power = (cards.length / sums.size) ** KAPPA - 1;
  const sharp = share.map((value, i) => value * sums.get(cards[i].label) ** power);
  const total = sharp.reduce((sum, value) => sum + value, 0);
  return sharp.map((value) => value / total);
}

const classes = (cards, share) => [...masses(cards, share)]
  .map(([label, probability]) => ({ label, probability: Math.min(1, probability) }))
  .sort((one, other) => other.probability - one.probability);

/** New examples of the cards that are chosen; `chance` is given where the draws are to be known. */
export async function imagine(net, cards, chosen, count, temperature, chance = null) {
  const random = source();
  const { addresses, noise, numbers } = chance ?? {
    addresses: uniforms(count, random), noise: normals(count * net.latent, random), numbers: uniforms(count * net.pixels, random),
  };
  const logs = logSoftmax(net.priorScores(cards.map((card) => card.key)).map((score, i) => (chosen(cards[i]) ? score : -Infinity)));
  const drawn = pick(logs, [...addresses]), images = [];
  for (const [i, a] of drawn.entries()) {
    const item = await net.item(cards[a].ink), row = noise.slice(i * net.latent, (i + 1) * net.latent);
    const z = row.map((value, j) => item.mean[j] + temperature * item.deviation[j] * value);
    const features = await net.decoded(item, Float32Array.from(z));
    const found = await net.drawn(features, numbers.slice(i * net.pixels, (i + 1) * net.pixels), temperature);
    images.push({ pixels: text(net.shown(found)[0]), card: cards[a].id });
  }
  return { images };
}

/** An image at each point of a plane in z: the one in which it changes most, or that of a seed. */
export async function vary(net, ink, points, seed) {
  const item = await net.item(ink);
  const [first, second] = seed ? anyDirections(net.latent, seed) : await mainDirections(net, item);
  const noise = points.flatMap(([across, down]) => first.map((value, i) => across * value + down * second[i]));
  return { images: net.shown(await net.typical(item, noise)).map(text) };
}

export const text = (ink) => btoa(String.fromCharCode(...Array.from(ink, (value) => Math.round(255 * value))));
