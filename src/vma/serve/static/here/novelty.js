/** log p(x|M), and whether an image is new to a memory, as `fewshot/scores.py` and `fewshot/novelty.py` tell it. */

import { logMeanExp, logSoftmax, logSumExp, pick, product } from "./numbers.js";

const MOST = 50, FEWEST = 4, UNUSUAL = 0.05, LEAST_WEIGHT = 0.1, LEAST_SPREAD = 1e-6;
const norm = (vector) => Math.max(Math.sqrt(product(vector, vector)), 1e-12);

/** An image and where it looks in a memory: log p(a), log q(a|x), and the bound of log p(x|M). */
export function lookUp(net, cards, target) {
  const logQ = logSoftmax(cards.map((card) => product(card.key, target.query)));
  const logP = logSoftmax(net.priorScores(cards.map((card) => card.key)));
  return { net, cards, target, logQ, logP, bound, kl: 0,
    divergence: () => logQ.reduce((sum, value, i) => sum + (value === -Infinity ? 0 : Math.exp(value) * (value - logP[i])), 0) };
}

/** log 1/K Σ w of the reads that the server makes too: the same uniform numbers and noise. */
async function bound() {
  const { net, cards, target, logQ, logP } = this, { latent } = net, { uniforms, noise } = net.page;
  const addresses = pick(logQ, uniforms), logs = [];
  this.kl = 0;
  for (const a of new Set(addresses)) {
    const rows = addresses.flatMap((each, row) => (each === a ? [row] : []));
    const mine = Float32Array.from(rows.flatMap((row) => noise.slice(row * latent, (row + 1) * latent)));
    const found = await net.weights(target, cards[a].ink, mine);
    logs.push(...found.logs.map((value) => value + logP[a] - logQ[a]));
    this.kl += (found.kl * rows.length) / addresses.length;
  }
  return logMeanExp(logs);
}

/** log p(x|{x}). */
const alone = async (look) => logMeanExp((await look.net.weights(look.target, look.target.ink, Float32Array.from(look.net.page.noise))).logs);

const angle = ({ cards, target }) => Math.acos(Math.min(1, Math.max(-1,
  Math.max(...cards.map(({ key }) => product(key, target.query) / norm(key))) / norm(target.query))));

const odds = ({ cards, target }, copies) =>
  logSumExp(copies.map((key) => product(key, target.query))) - logSumExp(cards.map(({ key }) => product(key, target.query)));

/** Whether an image whose log p(x|M) is known is new. */
export async function judge(look, value, { rule, turned }) {
  const measures = [value / (await alone(look)), angle(look), odds(look, turned.flat())];
  return tail(measures.reduce((sum, each, i) => sum + each * rule.slopes[i], -rule.offset), rule.freedom) < UNUSUAL;
}

/** What is usual in a memory, by its own items; `pause` lets other questions in, and says whether to go on. */
export async function usual(net, cards, pause) {
  const chosen = cards.filter((card) => cards.some((other) => other !== card && other.label === card.label));
  if (chosen.length < FEWEST) {
    const reason = `novelty needs ${FEWEST} or more items that share their label with another; this memory has ${chosen.length}`;
    return { rule: null, reason, turned: [] };
  }
  const count = Math.min(MOST, chosen.length);
  const items = Array.from({ length: count }, (_, i) => chosen[even((i * (chosen.length - 1)) / Math.max(1, count - 1))]);
  const turned = await Promise.all(items.map(async ({ ink }) => net.keys(turns(net, ink))));
  const known = [], fresh = [], several = new Set(items.map(({ label }) => label)).size > 1;
  for (const item of items) {
    const target = await net.target(item.ink), own = await alone({ net, target });
    const measure = async (keep) => {
      const look = lookUp(net, cards.filter(keep), target);
      return [(await look.bound()) / own, angle(look), odds(look, turned.filter((_, i) => keep(items[i])).flat())];
    };
    known.push(await measure((card) => card !== item));
    if (!(await pause())) return null;
    if (several) fresh.push(await measure((card) => card.label !== item.label));
    if (!(await pause())) return null;
  }
  return { rule: ruleOf(known, fresh), reason: "", turned };
}

const even = (value) => (value % 1 === 0.5 ? 2 * Math.round(value / 2) : Math.round(value));

/** Ink turned and mirrored in every way that its shape allows. */
export function turns({ size: [height, width] }, ink) {
  const square = height === width;
  return (square ? [1, 2, 3, 4, 5, 6, 7] : [1, 4, 5]).map((turn) => {
    const quarters = square ? turn % 4 : 2 * (turn % 2), found = new Float32Array(ink.length);
    for (let row = 0; row < height; row += 1) {
      for (let column = 0; column < width; column += 1) {
        let [y, x] = [row, column]; // of the pixel that comes here: turned back, then mirrored
        for (let i = 0; i < quarters; i += 1) [y, x] = square ? [x, width - 1 - y] : i ? [y, x] : [height - 1 - y, width - 1 - x];
        found[row * width + column] = ink[y * width + (turn >= 4 ? width - 1 - x : x)];
      }
    }
    return found;
  });
}

const column = (table, j) => table.map((row) => row[j]);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const variance = (values) => {
  const middle = mean(values);
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1);
};

function ruleOf(known, fresh) {
  const weights = [0, 1, 2].map((j) => {
    if (fresh.length < 2) return 1;
    const [one, other] = [column(known, j), column(fresh, j)];
    const spread = Math.max(Math.sqrt((variance(one) + variance(other)) / 2), LEAST_SPREAD);
    return Math.max((mean(other) - mean(one)) / spread, LEAST_WEIGHT);
  });
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let slopes = weights.map((weight, j) => weight / total / Math.max(Math.sqrt(variance(column(known, j))), LEAST_SPREAD));
  const sums = () => known.map((row) => product(row, slopes));
  const scale = Math.max(Math.sqrt(variance(sums())), LEAST_SPREAD) * Math.sqrt(1 + 1 / known.length);
  slopes = slopes.map((slope) => slope / scale);
  return { slopes, offset: mean(sums()), freedom: (known.length - 1) / 2 };
}

/** P(t > value) of Student's t with ν degrees of freedom, by the integral of its density. */
export function tail(value, freedom) {
  // With t = √ν tan θ the density is proportional to cos(θ)^(ν − 1), by Simpson's rule.
  const area = (from, to, steps = 2000) => {
    const width = (to - from) / steps, height = (i) => Math.max(0, Math.cos(from + i * width)) ** (freedom - 1);
    let sum = height(0) + height(steps);
    for (let i = 1; i < steps; i += 1) sum += height(i) * (i % 2 ? 4 : 2);
    return (sum * width) / 3;
  };
  const middle = Math.atan(value / Math.sqrt(freedom));
  return area(middle, Math.PI / 2) / area(-Math.PI / 2, Math.PI / 2);
}
