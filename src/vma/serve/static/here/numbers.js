/** Logarithms of sums, draws, and random numbers. */

export function logSumExp(values) {
  const largest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  if (largest === -Infinity) return largest;
  return largest + Math.log(values.reduce((sum, value) => sum + Math.exp(value - largest), 0));
}

export const logMeanExp = (values) => logSumExp(values) - Math.log(values.length);

export function logSoftmax(scores) {
  const total = logSumExp(scores);
  return scores.map((score) => score - total);
}

export function product(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i += 1) sum += one[i] * other[i];
  return sum;
}

/** The sum of vectors. */
export const total = (vectors) => vectors.reduce((sum, vector) => sum.map((value, i) => value + vector[i]));

/** Of black and white images, the one that differs least from all of them together. */
export function mostCentral(images) {
  const agreement = total(images).map((count) => 2 * count - images.length);
  const scores = images.map((image) => product(image, agreement));
  return images[scores.indexOf(Math.max(...scores))];
}

/** The first place at which the summed probabilities pass each of the uniform numbers. */
export function pick(logProbabilities, uniforms) {
  let total = 0;
  const sums = logProbabilities.map((value) => (total += Math.exp(value)));
  const last = logProbabilities.findLastIndex((value) => value > -Infinity);
  return uniforms.map((uniform) => {
    const found = sums.findIndex((sum) => sum > uniform * total);
    return found < 0 ? last : found;
  });
}

/** log N(z; mean, deviation²), for row `row` of z. */
export function logNormal(z, row, { mean, deviation }) {
  const size = mean.length;
  let sum = -0.5 * size * Math.log(2 * Math.PI);
  for (let i = 0; i < size; i += 1) {
    const scaled = (z[row * size + i] - mean[i]) / deviation[i];
    sum -= 0.5 * scaled * scaled + Math.log(deviation[i]);
  }
  return sum;
}

/** KL(q ‖ p) of two diagonal Gaussians. */
export function divergence(q, p) {
  let sum = 0;
  for (let i = 0; i < q.mean.length; i += 1) {
    const ratio = (q.deviation[i] / p.deviation[i]) ** 2, shift = ((q.mean[i] - p.mean[i]) / p.deviation[i]) ** 2;
    sum += 0.5 * (ratio + shift - 1 - Math.log(ratio));
  }
  return sum;
}

/** z = mean + deviation · noise, for every row of the noise. */
export function around({ mean, deviation }, noise) {
  return Float32Array.from(noise, (value, i) => mean[i % mean.length] + deviation[i % mean.length] * value);
}

/** Uniform numbers in [0, 1): any, or those of a seed (mulberry32). */
export function source(seed = null) {
  if (seed === null) return Math.random;
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const uniforms = (count, random) => Float32Array.from({ length: count }, random);

/** Standard normal numbers, by Box and Muller. */
export const normals = (count, random) => Float32Array.from({ length: count }, () =>
  Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()));
