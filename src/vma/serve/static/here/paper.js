/** The paper of a picture and the ink above it, as `data/paper.py` finds them: 0 is empty paper, 255 full ink. */

import { blurred, changed, grid, largest, quantile, ranked, rounded } from "./grids.js";
import { scaled, sized } from "./scaling.js";

const SMALL = 32, WINDOW = 17, RANK = 216; // of 17 × 17 pixels, three quarters
const BLACK = 31, WHITE = 224, SLIGHTLY = 4, CLEARLY = 1.5, DARKEST = 0.25;
const RIDGE = 1e-10; // with less than six pixels of paper, or all in a line, the smallest weights count

/** The median of the outermost pixels. */
export function borderLevel({ data, height, width }) {
  const border = [];
  for (let x = 0; x < width; x += 1) border.push(data[x], data[(height - 1) * width + x]);
  for (let y = 0; y < height; y += 1) border.push(data[y * width], data[y * width + width - 1]);
  return quantile(border, 0.5);
}

/** Ink less the level of the border, which is the paper's. */
export function aboveBorder(ink) {
  const paper = Math.floor(borderLevel(ink));
  return changed(ink, Uint8Array, (value) => Math.max(value, paper) - paper);
}

/** 255 · (1 − light / paper): ink by how much light it takes from the paper around it, however that is lit. */
export function abovePaper(ink) {
  const light = changed(ink, Uint8Array, (value) => 255 - value), paper = localPaper(light).data, { fround } = Math;
  return changed(light, Uint8Array, (value, i) =>
    rounded(fround(255 * Math.max(0, fround(1 - fround(value / Math.max(1, paper[i])))))));
}

/** Whether ink is dark: as strokes stand out from their surroundings; where that is not clear, by the border. */
export function darkOnLight(light) {
  const border = borderLevel(light), small = smallCopy(light);
  const around = blurred(small, Math.max(small.height, small.width) / 4).data;
  const apart = small.data.map((value, i) => value - around[i]);
  const dark = Math.max(-quantile(apart, 0.01), SLIGHTLY), bright = Math.max(quantile(apart, 0.99), SLIGHTLY);
  const clear = border > BLACK && border < WHITE && Math.max(dark, bright) > CLEARLY * Math.min(dark, bright);
  return clear ? dark > bright : border >= 128;
}

function smallCopy(light) {
  return scaled(changed(light, Float32Array), Math.min(1, SMALL / Math.max(light.height, light.width)));
}

/** The level of the paper at every pixel: a smooth surface, times what that misses around the pixel. */
function localPaper(light) {
  const small = changed(smallCopy(light), Float32Array, (value) => Math.max(value, 1));
  const least = DARKEST * largest(small), around = brightestAround(small).data;
  const isPaper = small.data.map((value, i) => Number(value >= Math.fround(0.85 * Math.max(around[i], least))));
  const surface = smoothSurface(small, isPaper);
  const missed = brightestAround(changed(small, Float64Array, (value, i) => value / surface[i]));
  const smooth = blurred(changed(missed, Float64Array, (value) => Math.max(value, DARKEST)), WINDOW / 4, { kind: Float64Array });
  const paper = changed(smooth, Float32Array, (value, i) => value * surface[i]);
  return sized(paper, light.height, light.width, true);
}

const brightestAround = (levels) => ranked(levels, WINDOW, RANK);

/** The polynomial of degree 2 in both directions that is nearest to the levels where there is paper. */
function smoothSurface({ data, height, width }, isPaper) {
  const step = (i, length) => (length > 1 ? -1 + (2 * i) / (length - 1) : -1);
  const terms = Array.from(data, (_, i) => {
    const y = step(Math.floor(i / width), height), x = step(i % width, width);
    return [1, y, x, y * x, y * y, x * x];
  });
  const there = terms.map((_, i) => i).filter((i) => isPaper[i]), levels = there.map((i) => data[i]);
  const weights = leastSquares(there.map((i) => terms[i]), levels);
  const [low, high] = [Math.min(...levels), Math.max(...levels)];
  return terms.map((row) => Math.min(high, Math.max(low, row.reduce((sum, value, j) => sum + value * weights[j], 0))));
}

/** The weights w for which rows · w is nearest to the values, by the normal equations and Gauss's elimination. */
function leastSquares(rows, values) {
  const size = rows[0].length, places = [...Array(size).keys()];
  const dot = (read) => rows.reduce((sum, row, i) => sum + read(row, i), 0);
  const system = places.map((i) => [
    ...places.map((j) => dot((row) => row[i] * row[j]) + Number(i === j) * RIDGE * rows.length),
    dot((row, k) => row[i] * values[k]),
  ]);
  for (const i of places) { // the matrix is positive definite: no pivot is needed
    for (const j of places) {
      if (j === i) continue;
      const factor = system[j][i] / system[i][i];
      for (let k = i; k <= size; k += 1) system[j][k] -= factor * system[i][k];
    }
  }
  return system.map((row, i) => row[size] / row[i]);
}
