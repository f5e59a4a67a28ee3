/** From ink on its paper to strokes of one pen in the middle of a page, as `data/ink.py` makes them. */

import { blurred, changed, count, grid, grown, labelled, largest, part, rounded, turned } from "./grids.js";
import { scaled, sized } from "./scaling.js";
import { thinned } from "./thinning.js";

const PALEST = 16, DRAWN = 104, PEN = 1.5, MARGIN = 0.18, SPECK = 0.01, PARTS = 12, MIDTONES = 0.5, LITTLE = 4;
const ROOM = 8; // pixels around what is thinned: an edge must not end a stroke

/** Ink scaled so that the strongest is full; with next to none it stays empty. */
export function toFull(ink) {
  const strongest = largest(ink);
  return strongest < PALEST ? ink : changed(ink, Uint8Array, (value) => rounded(value * (255 / strongest)));
}

/** In the middle of an empty page of the proportions of `size`, scaled by area. */
export function fitted(ink, [rows, columns]) {
  if (ink.height / rows > ink.width / columns) return turned(fitted(turned(ink), [columns, rows]));
  const narrow = sized(ink, ink.height, columns);
  const height = Math.max(rounded((rows * ink.width) / columns), ink.height);
  return sized(part(narrow, -((height - ink.height) >> 1), 0, height, columns), rows, columns);
}

/** Every stroke as the path of one pen, drawn at a multiple of `size` and pooled; and what is odd, if anything is. */
export function redrawn(ink, [height, width]) {
  const level = threshold(ink), strokes = withoutSpecks(changed(ink, Uint8Array, (value) => Number(value >= level)));
  if (!strokes.data.includes(1)) return { ink: grid(height, width, new Uint8Array(height * width)), doubt: null };
  const fine = Math.max(1, rounded(DRAWN / Math.max(height, width)));
  const path = pathOf(softened(ink, strokes, level), fine * height, fine * width);
  const found = pooled(grown(path, PEN), fine);
  return { ink: found, doubt: doubt(ink, level, strokes, found) };
}

/** The level from which ink is a stroke: Otsu's, between a quarter and half of the strongest; 256 for none. */
function threshold(ink) {
  const strongest = largest(blurred(ink, 1, { mirror: true })); // not that of a single pixel
  return strongest < PALEST ? 256 : Math.min(strongest / 2, Math.max(strongest / 4, otsu(ink.data)));
}

/** The level that divides the others into two groups of the largest variance between them. */
function otsu(levels) {
  const counts = new Float64Array(256);
  for (let i = 0; i < levels.length; i += 1) counts[levels[i]] += 1;
  const all = levels.length, sum = counts.reduce((total, often, level) => total + often * level, 0);
  let [below, sumBelow, best, found] = [0, 0, -1, levels[0]];
  for (let level = 0; level < 255 && below + counts[level] < all; level += 1) {
    below += counts[level];
    sumBelow += counts[level] * level;
    if (!below) continue;
    const between = Math.fround(below * (all - below)) * (sumBelow / below - (sum - sumBelow) / (all - below)) ** 2;
    if (between > best) [best, found] = [between, level];
  }
  return found;
}

/** The strokes without parts that are very small beside the largest. */
function withoutSpecks(strokes) {
  const { parts, sizes } = labelled(strokes);
  if (sizes.length < 3) return strokes;
  const least = Math.max(4, SPECK * Math.max(...sizes));
  return changed(strokes, Uint8Array, (_, i) => Number(parts[i] > 0 && sizes[parts[i]] >= least));
}

/** How much of each pixel is stroke, cut to the strokes: 0.5 at the threshold, nothing away from them. */
function softened(ink, strokes, level) {
  const near = grown(strokes, 2, true).data;
  const soft = changed(ink, Float32Array, (value, i) => near[i] * Math.min(1, value / (2 * level)));
  const { top, left, bottom, right } = box(strokes);
  return part(soft, top, left, bottom - top, right - left);
}

function box({ data, height, width }) {
  let [top, left, bottom, right] = [height, width, 0, 0];
  for (let y = 0; y < height; y += 1) {
    const row = data.subarray(y * width, (y + 1) * width), first = row.indexOf(1);
    if (first < 0) continue;
    [top, bottom] = [Math.min(top, y), y + 1];
    [left, right] = [Math.min(left, first), Math.max(right, row.lastIndexOf(1) + 1)];
  }
  return { top, left, bottom, right };
}

/** The middle lines of strokes in the middle of a page. */
function pathOf(strokes, height, width) {
  const scale = (1 - 2 * MARGIN) * Math.min(height / strokes.height, width / strokes.width);
  const drawn = changed(scaled(strokes, scale), Uint8Array, (value) => Number(value >= 0.5));
  const path = thinned(part(drawn, -ROOM, -ROOM, drawn.height + 2 * ROOM, drawn.width + 2 * ROOM));
  return part(path, before(path.height, height), before(path.width, width), height, width);
}

/** Where a page of `want` pixels begins in the picture that stands in its middle: before it, if it is smaller. */
const before = (have, want) => (have > want ? (have - want) >> 1 : -((want - have) >> 1));

/** 255 · max over blocks of `fine` × `fine` pixels. */
function pooled({ data, height, width }, fine) {
  const found = grid(height / fine, width / fine, new Uint8Array((height * width) / fine ** 2));
  data.forEach((value, i) => {
    if (value) found.data[Math.floor(i / width / fine) * found.width + Math.floor((i % width) / fine)] = 255;
  });
  return found;
}

/** What is odd about ink on its paper for the drawing of one character, if anything is. */
function doubt(ink, level, strokes, found) {
  if (count(found, (value) => value > 0) < LITTLE) return "hardly any ink is left";
  const some = count(ink, (value) => value >= level / 2);
  const half = count(ink, (value) => value >= level / 2 && value < 1.5 * level);
  if (half > Math.max(MIDTONES * some, ink.data.length / 5)) return "it looks like a photograph, not a drawing";
  const parts = labelled(strokes).sizes.length - 1;
  return parts > PARTS ? `it has ${parts} separate parts, more than a character has` : null;
}
