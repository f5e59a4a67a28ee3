/** Small images of ink: base64 bytes, 0 is empty and 255 full, painted on canvases pixel by pixel. */

let size = [26, 26];

export function setSize([height, width]) {
  size = [height, width];
  document.documentElement.style.setProperty("--aspect", `${width} / ${height}`);
}

export const getSize = () => size;

export function paint(canvas, pixels) {
  const [height, width] = size;
  const ink = Uint8Array.from(atob(pixels), (character) => character.charCodeAt(0));
  const image = new ImageData(width, height);
  ink.forEach((value, place) => { image.data[4 * place + 3] = value; });
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export function picture(pixels, label = "") {
  const canvas = document.createElement("canvas");
  canvas.className = "pixels";
  if (label) {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
  }
  return paint(canvas, pixels);
}

/** All `canvases` in rows of `columns` on white paper, as a PNG file. */
export function sheet(canvases, columns, scale = 8, gap = 16) {
  const [height, width] = size.map((side) => side * scale);
  const rows = Math.ceil(canvases.length / columns);
  const page = document.createElement("canvas");
  page.width = columns * (width + gap) + gap;
  page.height = rows * (height + gap) + gap;
  const context = page.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, page.width, page.height);
  context.imageSmoothingEnabled = false;
  canvases.forEach((canvas, i) => {
    const x = gap + (i % columns) * (width + gap), y = gap + Math.floor(i / columns) * (height + gap);
    context.drawImage(canvas, x, y, width, height);
  });
  return new Promise((done) => page.toBlob(done, "image/png"));
}

const LARGEST = 1024;

/** A file that the browser can show, as base64 PNG of at most 1024 pixels a side. */
export async function readImage(file) {
  const bitmap = await createImageBitmap(file);
  const shrink = Math.min(1, LARGEST / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * shrink));
  canvas.height = Math.max(1, Math.round(bitmap.height * shrink));
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return base64(canvas);
}

export const base64 = (canvas) => canvas.toDataURL("image/png").split(",")[1];

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
