/** Two orthonormal directions in z: those in which an image changes most, or any. */

import { normals, product, source } from "./numbers.js";

const known = new WeakMap();

/** The first two left singular vectors of how an image changes along each axis of z, the largest entry positive. */
export function mainDirections(net, item) {
  if (!known.has(item)) known.set(item, findMain(net, item));
  return known.get(item);
}

async function findMain(net, item) {
  const { latent } = net, steps = new Float32Array(2 * latent * latent);
  for (let i = 0; i < latent; i += 1) {
    steps[i * latent + i] = 1;
    steps[(latent + i) * latent + i] = -1;
  }
  const { means } = await net.typical(item, steps);
  const changes = Array.from({ length: latent }, (_, i) => means[i].map((value, j) => value - means[latent + i][j]));
  const vectors = eigenvectors(changes.map((one) => changes.map((other) => product(one, other)))).slice(0, 2).map(turned);
  return vectors.length === 2 ? vectors : [vectors[0], vectors[0].map(() => 0)];
}

function turned(vector) {
  const largest = vector.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0);
  return largest < 0 ? vector.map((value) => -value) : vector;
}

/** Eigenvectors of a symmetric matrix, those of the largest eigenvalues first, by Jacobi's rotations. */
export function eigenvectors(matrix) {
  const size = matrix.length, a = matrix.map((row) => [...row]);
  const vectors = a.map((_, i) => a.map((_, j) => Number(i === j))); // one in each row
  for (let sweep = 0; sweep < 50; sweep += 1) {
    let rest = 0, all = 0;
    a.forEach((row, i) => row.forEach((value, j) => { all += value * value; if (i !== j) rest += value * value; }));
    if (rest <= 1e-28 * all) break;
    for (let p = 0; p < size; p += 1) for (let q = p + 1; q < size; q += 1) rotate(a, vectors, p, q);
  }
  return vectors.map((vector, i) => ({ vector, value: a[i][i] })).sort((one, other) => other.value - one.value)
    .map(({ vector }) => vector);
}

function rotate(a, vectors, p, q) {
  if (a[p][q] === 0) return;
  const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const c = 1 / Math.sqrt(t * t + 1), s = t * c;
  const mix = (one, other) => [c * one - s * other, s * one + c * other];
  for (const row of a) [row[p], row[q]] = mix(row[p], row[q]);
  for (let i = 0; i < a.length; i += 1) {
    [a[p][i], a[q][i]] = mix(a[p][i], a[q][i]);
    [vectors[p][i], vectors[q][i]] = mix(vectors[p][i], vectors[q][i]);
  }
}

export function anyDirections(size, seed) {
  const random = source(seed), unit = (vector) => vector.map((value) => value / Math.sqrt(product(vector, vector)));
  const first = unit([...normals(size, random)]), other = [...normals(size, random)];
  const overlap = product(first, other);
  return size > 1 ? [first, unit(other.map((value, i) => value - overlap * first[i]))] : [first, [0]];
}
