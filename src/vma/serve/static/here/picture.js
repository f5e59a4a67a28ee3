/** A PNG file as ink of the model's size: turn, level, fit, binarize; it neither crops nor draws strokes anew. */

import { Refusal } from "./refusal.js";

const FAINTEST = 16, SHARE = 0.25, LARGEST = 2048;

/** Ink of a drawing: 1 where there is some, else 0. */
export async function inkOf(png, size, binarize) {
  const { width, height, data } = await decoded(png);
  const light = new Uint8Array(width * height);
  for (let i = 0; i < light.length; i += 1) {
    light[i] = (19595 * data[4 * i] + 38470 * data[4 * i + 1] + 7471 * data[4 * i + 2] + 0x8000) >> 16;
  }
  return normalised(light, [height, width], size, binarize);
}

/** Pixels of a PNG file on white paper. */
async function decoded(png) {
  let bitmap;
  try {
    const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
    bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  } catch {
    throw new Refusal("An image cannot be read: it is not a PNG file, is damaged, or is far too large.");
  }
  const { width, height } = bitmap;
  if (Math.max(width, height) > LARGEST) {
    throw new Refusal(`An image has ${width}x${height} pixels: send at most ${LARGEST}x${LARGEST}.`);
  }
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.fillStyle = "white";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, width, height);
}

export function normalised(light, shape, size, binarize) {
  const dark = borderLevel(light, shape) >= 128, raw = dark ? light.map((value) => 255 - value) : light;
  const paper = binarize ? Math.floor(borderLevel(raw, shape)) : 0;
  const small = fitted(raw.map((value) => Math.max(value, paper) - paper), shape, size);
  const strongest = small.reduce((most, value) => Math.max(most, value), 0);
  const full = binarize && strongest >= FAINTEST ? small.map((value) => Math.round(value * (255 / strongest))) : small;
  const ink = Float32Array.from(full, (value) => (binarize ? Number(value >= 255 * SHARE) : value / 255));
  if (ink.every((value) => value === 0)) {
    throw new Refusal("There is no ink in the image: it is blank, or its strokes are too thin or too faint.");
  }
  return ink;
}

/** The median of the outermost pixels. */
function borderLevel(levels, [height, width]) {
  const border = [];
  for (let x = 0; x < width; x += 1) border.push(levels[x], levels[(height - 1) * width + x]);
  for (let y = 0; y < height; y += 1) border.push(levels[y * width], levels[y * width + width - 1]);
  border.sort((one, other) => one - other);
  const middle = border.length / 2;
  return (border[Math.ceil(middle) - 1] + border[Math.floor(middle)]) / 2;
}

/** In the middle of an empty page of the proportions of `size`, scaled by area. */
function fitted(ink, [height, width], size) {
  const scale = Math.max(height / size[0], width / size[1]);
  const [rows, columns] = [Math.max(Math.round(scale * size[0]), height), Math.max(Math.round(scale * size[1]), width)];
  const [top, left] = [(rows - height) >> 1, (columns - width) >> 1], page = new Uint8Array(rows * columns);
  for (let y = 0; y < height; y += 1) page.set(ink.subarray(y * width, (y + 1) * width), (top + y) * columns + left);
  return byArea(turned(byArea(turned(page, rows, columns), columns, rows, size[1]), size[1], rows), rows, size[1], size[0]);
}

/** Rows become columns. */
function turned(levels, height, width) {
  const found = new Uint8Array(levels.length);
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) found[x * height + y] = levels[y * width + x];
  return found;
}

/** `count` rows instead of `height`, each the mean of those that it covers, rounded as Pillow's BOX does. */
function byArea(levels, height, width, count) {
  const found = new Uint8Array(count * width), scale = height / count, support = Math.max(scale, 1) / 2;
  for (let row = 0; row < count; row += 1) {
    const centre = (row + 0.5) * scale;
    const from = Math.max(0, Math.trunc(centre - support + 0.5)), to = Math.min(height, Math.trunc(centre + support + 0.5));
    for (let x = 0; x < width; x += 1) {
      let sum = 0;
      for (let y = from; y < to; y += 1) sum += levels[y * width + x];
      found[row * width + x] = Math.floor(sum / (to - from) + 0.5);
    }
  }
  return found;
}
