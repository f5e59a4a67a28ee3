/** Numbers and names for a reader. */

export const number = (count, noun) => `${count} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;

export function percent(share) {
  if (share < 0.0005) return "<0.1 %";
  return `${(100 * share).toFixed(share >= 0.0995 ? 0 : 1)} %`;
}

/** "a, b and 3 more". */
export function listed(names, most = 3) {
  const rest = names.length - most;
  return names.slice(0, most).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}

/** A sentence about an image, and what is odd about it for the drawing of one character. */
export const doubted = (sentence, doubts) => (doubts.length ? `${sentence} But ${doubts[0].doubt}.` : sentence);

export const nats = (value) => `${value.toFixed(1).replace("-", "−")} nats`;

/** The first of A, B, …, Z, A1, B1, … that is not taken. */
export function freshName(taken) {
  for (let i = 0; ; i += 1) {
    const name = String.fromCharCode(65 + (i % 26)) + (i < 26 ? "" : Math.floor(i / 26));
    if (!taken.has(name)) return name;
  }
}
