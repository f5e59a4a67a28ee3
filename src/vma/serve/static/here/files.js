/** A memory as a file: the safetensors that `ImageMemory.save` writes, without keys, which are computed anew. */

import { Refusal } from "./refusal.js";

export function written({ size, manifest }, cards) {
  const pixels = size[0] * size[1], data = new Uint8Array(cards.length * pixels);
  cards.forEach(({ ink }, i) => data.set(ink.map((value) => Math.round(255 * value)), i * pixels));
  const labels = JSON.stringify(cards.map(({ label }) => label));
  const header = new TextEncoder().encode(JSON.stringify({
    __metadata__: { format: "vma-memory", version: "1", labels, model: manifest.fingerprint },
    items: { dtype: "U8", shape: [cards.length, ...size], data_offsets: [0, data.length] },
  }));
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(header.length), true);
  return new Blob([length, header, data], { type: "application/octet-stream" });
}

/** The items { label, ink } of a file. */
export async function readMemory(file, size) {
  const buffer = await file.arrayBuffer(), damaged = new Refusal("The file is not a memory file, or is damaged.");
  let header, start;
  try {
    start = 8 + Number(new DataView(buffer).getBigUint64(0, true));
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8)));
  } catch {
    throw damaged;
  }
  const { items, __metadata__: told = {} } = header;
  if (told.format !== "vma-memory") throw new Refusal("The file is a safetensors file, but not one of a vma memory.");
  if (Number(told.version) > 1) throw new Refusal("The file has a newer format than this page reads.");
  if (items?.dtype !== "U8" || items.shape?.length !== 3) throw damaged;
  const [count, ...shape] = items.shape, pixels = size[0] * size[1];
  if (shape.join() !== size.join()) {
    throw new Refusal(`The file remembers images of ${shape.join("x")}, but the model works on ${size.join("x")}.`);
  }
  const data = new Uint8Array(buffer.slice(start + items.data_offsets[0], start + items.data_offsets[1]));
  const labels = JSON.parse(told.labels ?? "[]");
  if (data.length !== count * pixels || labels.length !== count) throw damaged;
  return labels.map((label, i) => ({
    label: String(label ?? "unnamed").slice(0, 40),
    ink: Float32Array.from(data.subarray(i * pixels, (i + 1) * pixels), (value) => value / 255),
  }));
}
