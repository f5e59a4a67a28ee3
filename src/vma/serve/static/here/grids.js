/** Pictures as { data, height, width }, row by row, and what is done to them pixel by pixel. */

export const grid = (height, width, data) => ({ data, height, width });

/** `by(value, place)` for every pixel, in an array of `kind`; a loop, since `kind.from` takes ten times as long. */
export function changed({ data, height, width }, kind, by = (value) => value) {
  const found = new kind(data.length);
  for (let i = 0; i < data.length; i += 1) found[i] = by(data[i], i);
  return grid(height, width, found);
}

/** To the nearest whole number; halves to the even one, as NumPy and Python do. */
export function rounded(value) {
  const below = Math.floor(value), rest = value - below;
  return rest < 0.5 || (rest === 0.5 && below % 2 === 0) ? below : below + 1;
}

export function largest({ data }) {
  let most = -Infinity;
  for (let i = 0; i < data.length; i += 1) if (data[i] > most) most = data[i];
  return most;
}

export function count({ data }, wanted) {
  let sum = 0;
  for (let i = 0; i < data.length; i += 1) if (wanted(data[i])) sum += 1;
  return sum;
}

/** The value below which a share of them are, between neighbours in proportion. */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort(), place = share * (sorted.length - 1), below = Math.floor(place);
  return sorted[below] + (place - below) * (sorted[Math.min(below + 1, sorted.length - 1)] - sorted[below]);
}

export function turned({ data, height, width }) {
  const found = new data.constructor(data.length);
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) found[x * height + y] = data[y * width + x];
  return grid(width, height, found);
}

/** A part of the picture; what lies outside of it is 0. */
export function part({ data, height, width }, top, left, rows, columns) {
  const found = new data.constructor(rows * columns), from = Math.max(0, left), to = Math.min(width, left + columns);
  for (let y = Math.max(0, top); y < Math.min(height, top + rows); y += 1) {
    found.set(data.subarray(y * width + from, y * width + to), (y - top) * columns + from - left);
  }
  return grid(rows, columns, found);
}

/** All within `radius` of what is not 0: a disc, or with `steps` a diamond of so many steps. */
export function grown({ data, height, width }, radius, steps = false) {
  const found = new Uint8Array(data.length), reach = Math.floor(radius), offsets = [];
  for (let y = -reach; y <= reach; y += 1) {
    for (let x = -reach; x <= reach; x += 1) {
      if ((steps ? Math.abs(x) + Math.abs(y) : Math.hypot(x, y)) <= radius) offsets.push([y, x]);
    }
  }
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if (!data[y * width + x]) continue;
      for (const [down, across] of offsets) {
        const row = y + down, column = x + across;
        if (row >= 0 && row < height && column >= 0 && column < width) found[row * width + column] = 1;
      }
    }
  }
  return grid(height, width, found);
}

/** The number of each pixel's part (0 for none; corners touch), and the size of every part. */
export function labelled({ data, height, width }) {
  const parts = new Int32Array(data.length), sizes = [0], open = [];
  for (let start = 0; start < data.length; start += 1) {
    if (!data[start] || parts[start]) continue;
    const number = sizes.push(0) - 1;
    parts[start] = number;
    open.push(start);
    while (open.length) {
      const place = open.pop(), y = Math.floor(place / width), x = place - y * width;
      sizes[number] += 1;
      for (let row = Math.max(0, y - 1); row <= Math.min(height - 1, y + 1); row += 1) {
        for (let column = Math.max(0, x - 1); column <= Math.min(width - 1, x + 1); column += 1) {
          const next = row * width + column;
          if (data[next] && !parts[next]) {
            parts[next] = number;
            open.push(next);
          }
        }
      }
    }
  }
  return { parts, sizes };
}

const nearest = (place, length) => Math.min(length - 1, Math.max(0, place));

function mirrored(place, length) {
  const inside = ((place % (2 * length)) + 2 * length) % (2 * length);
  return inside < length ? inside : 2 * length - 1 - inside;
}

/** Blurred by a Gaussian that ends at four deviations; `kind` is the array of the numbers between and after. */
export function blurred(picture, deviation, { kind = Float32Array, mirror = false } = {}) {
  const reach = Math.floor(4 * deviation + 0.5), weights = [];
  for (let i = -reach; i <= reach; i += 1) weights.push(Math.exp((-0.5 * i * i) / deviation ** 2));
  const total = weights.reduce((sum, value) => sum + value, 0);
  const shares = weights.slice(0, reach + 1).map((value) => value / total);
  const down = (each) => blurredDown(each, shares, kind, mirror ? mirrored : nearest);
  return turned(down(turned(down(picture))));
}

function blurredDown({ data, height, width }, shares, kind, inside) {
  const reach = shares.length - 1, found = new kind(data.length);
  for (let y = 0; y < height; y += 1) {
    const above = [], below = [];
    for (let i = reach; i > 0; i -= 1) {
      above.push(inside(y - i, height) * width);
      below.push(inside(y + i, height) * width);
    }
    for (let x = 0; x < width; x += 1) {
      let sum = data[y * width + x] * shares[reach];
      for (let i = 0; i < reach; i += 1) sum += (data[above[i] + x] + data[below[i] + x]) * shares[i];
      found[y * width + x] = sum;
    }
  }
  return grid(height, width, found);
}

/** In a window of `side` pixels around each, the value of a rank: 0 is the smallest. */
export function ranked({ data, height, width }, side, rank) {
  const found = new data.constructor(data.length), seen = new Float64Array(side * side), reach = side >> 1;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      let i = 0;
      for (let row = y - reach; row <= y + reach; row += 1) {
        for (let column = x - reach; column <= x + reach; column += 1) {
          seen[i++] = data[nearest(row, height) * width + nearest(column, width)];
        }
      }
      found[y * width + x] = seen.sort()[rank];
    }
  }
  return grid(height, width, found);
}
