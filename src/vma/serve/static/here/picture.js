/** A PNG file as ink of the model's size, by the steps of `data/picture.py` and with their defaults. */

import { changed, grid } from "./grids.js";
import { fitted, redrawn, toFull } from "./ink.js";
import { aboveBorder, abovePaper, borderLevel, darkOnLight } from "./paper.js";
import { Refusal } from "./refusal.js";
import { scaled } from "./scaling.js";

const SHARE = 0.25, LARGEST = 1024, READ = 2048;

/** { ink: 1 where there is some, else 0; or grey, doubt: what is odd about the picture, or null }. */
export async function inkOf(png, size, binarize) {
  return normalised(lightness(await decoded(png)), size, binarize);
}

async function decoded(png) {
  let bitmap;
  try {
    const bytes = Uint8Array.from(atob(png), (character) => character.charCodeAt(0));
    bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  } catch {
    throw new Refusal("An image cannot be read: it is not a PNG file, is damaged, or is far too large.");
  }
  const { width, height } = bitmap;
  if (Math.max(width, height) > READ) {
    throw new Refusal(`An image has ${width}x${height} pixels: send at most ${READ}x${READ}.`);
  }
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  return context.getImageData(0, 0, width, height);
}

/** Grey levels: what is transparent is paper, and black paper where next to nothing of what can be seen is dark. */
function lightness({ width, height, data }) {
  const grey = (paper) => {
    const found = new Uint8Array(width * height);
    for (let i = 0; i < found.length; i += 1) {
      const share = data[4 * i + 3] / 255, over = (value) => Math.round(value * share + paper * (1 - share));
      const [red, green, blue] = [over(data[4 * i]), over(data[4 * i + 1]), over(data[4 * i + 2])];
      found[i] = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16;
    }
    return grid(height, width, found);
  };
  const alpha = grid(height, width, Uint8Array.from({ length: width * height }, (_, i) => data[4 * i + 3]));
  return grey(whiteOnTransparent(alpha, data) ? 0 : 255);
}

function whiteOnTransparent(alpha, data) {
  if (borderLevel(alpha) >= 128) return false;
  let [seen, dark] = [0, 0];
  alpha.data.forEach((value, i) => {
    if (value < 128) return;
    seen += 1;
    dark += Number((19595 * data[4 * i] + 38470 * data[4 * i + 1] + 7471 * data[4 * i + 2] + 0x8000) >> 16 < 128);
  });
  return seen > 0 && dark / seen < 0.1;
}

/** Ink from grey levels; a picture of the model's size is neither cropped nor drawn anew. */
export function normalised(light, size, binarize) {
  const made = light.height === size[0] && light.width === size[1];
  const { ink, doubt } = made || !binarize ? { ink: plain(light, size, binarize), doubt: null } : drawnAnew(light, size);
  if (!ink.data.some((value) => value > 0)) {
    throw new Refusal("There is no ink in the image: it is blank, or its strokes are too thin or too faint.");
  }
  return { ink: Float32Array.from(ink.data, (value) => value / 255), doubt };
}

/** Ink above the level of the border, fitted; above nothing where the model knows shades. */
function plain(light, size, binarize) {
  const ink = borderLevel(light) >= 128 ? negative(light) : light;
  if (!binarize) return fitted(ink, size);
  return changed(toFull(fitted(aboveBorder(ink), size)), Uint8Array, (value) => 255 * Number(value >= 255 * SHARE));
}

function drawnAnew(light, size) {
  const small = scaled(light, Math.min(1, LARGEST / Math.max(light.height, light.width)));
  return redrawn(abovePaper(darkOnLight(small) ? negative(small) : small), size);
}

const negative = (picture) => changed(picture, Uint8Array, (value) => 255 - value);
