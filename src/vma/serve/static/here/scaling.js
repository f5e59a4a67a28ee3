/** Pictures at other sizes, by area where they shrink or smoothly where they grow: pixel for pixel as Pillow does it. */

import { grid, rounded, turned } from "./grids.js";

const PRECISION = 2 ** 22; // of a pixel's share, where pixels are bytes

const box = (x) => Number(x > -0.5 && x <= 0.5);

function cubic(value) {
  const x = Math.abs(value);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? -0.5 * (((x - 5) * x + 8) * x - 4) : 0;
}

/** At another scale. */
export function scaled(picture, scale) {
  const [height, width] = [picture.height, picture.width].map((side) => Math.max(1, rounded(side * scale)));
  return sized(picture, height, width, scale > 1);
}

export function sized(picture, height, width, smooth = false) {
  const [filter, reach] = smooth ? [cubic, 2] : [box, 0.5];
  return down(turned(down(turned(picture), width, filter, reach)), height, filter, reach);
}

/** `count` rows in the place of all, each a mean of rows by `filter`, which is 0 beyond `reach`. */
function down(picture, count, filter, reach) {
  const { data, height, width } = picture;
  if (count === height) return picture;
  const found = new data.constructor(count * width), bytes = data instanceof Uint8Array;
  for (let row = 0; row < count; row += 1) {
    const { first, shares } = sharesOf(row, height, count, filter, reach, bytes);
    for (let x = 0; x < width; x += 1) {
      let sum = 0;
      for (let i = 0; i < shares.length; i += 1) sum += data[(first + i) * width + x] * shares[i];
      found[row * width + x] = bytes ? Math.min(255, Math.max(0, Math.floor(sum / PRECISION + 0.5))) : sum;
    }
  }
  return grid(count, width, found);
}

function sharesOf(row, height, count, filter, reach, bytes) {
  const scale = height / count, wide = Math.max(scale, 1), centre = (row + 0.5) * scale;
  const first = Math.max(0, Math.trunc(centre - reach * wide + 0.5));
  const last = Math.min(height, Math.trunc(centre + reach * wide + 0.5));
  const raw = Array.from({ length: last - first }, (_, i) => filter((first + i - centre + 0.5) * (1 / wide)));
  const total = raw.reduce((sum, value) => sum + value, 0);
  const whole = (share) => Math.trunc(share * PRECISION + (share < 0 ? -0.5 : 0.5));
  return { first, shares: raw.map((value) => (bytes ? whole(value / total) : value / total)) };
}
