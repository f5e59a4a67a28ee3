/** The middle lines of strokes, one pixel wide, by Zhang and Suen's method as scikit-image has it. */

import { grid, part } from "./grids.js";

/**
 * When a pixel goes, by its neighbours: 1 in the first half of a round, 2 in the second, 3 in both, 0 never.
 *
 * The place in the table has a bit for each neighbour, clockwise from the upper left (1, 2, 4, …, 128). It is the
 * table of scikit-image (copyright the scikit-image team, BSD 3-clause), which also takes corners of stairs away.
 */
const GOES = [
  "0001001300311013", "0000000020203033", "0000000030000000", "0000000020003022",
  "0000000000000000", "0000000000000000", "2000000020002000", "3000000030003020",
  "0031001300000001", "0000000000000001", "3100000000000000", "2000000000000000",
  "2313001300000001", "0000000000000000", "2301000100000000", "3301000022002000",
].join("");

/** The picture (1 is stroke, 0 is none) without all that may go, round by round until nothing more does. */
export function thinned({ data, height, width }) {
  const page = part(grid(height, width, data), -1, -1, height + 2, width + 2), strokes = page.data;
  for (let gone = true; gone;) {
    gone = false;
    for (const half of [1, 2]) gone = thinnedOnce(strokes, page.width, half) || gone;
  }
  return part(page, 1, 1, height, width);
}

function thinnedOnce(strokes, width, half) {
  const around = [-width - 1, -width, -width + 1, 1, width + 1, width, width - 1, -1], going = [];
  for (let place = 0; place < strokes.length; place += 1) {
    if (!strokes[place]) continue;
    const neighbours = around.reduce((sum, offset, i) => sum + (strokes[place + offset] << i), 0);
    if (Number(GOES[neighbours]) & half) going.push(place);
  }
  for (const place of going) strokes[place] = 0;
  return going.length > 0;
}
