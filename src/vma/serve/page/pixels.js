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

const FINENESS = 8; // pixels of a smooth canvas for each of the model's
const STEEPNESS = 5; // of the edge of black on white, once it is smooth

/** The same without steps: shades of ink flow into each other, and black and white keep a sharp, round edge. */
export function paintSmooth(canvas, pixels) {
  const small = paint(document.createElement("canvas"), pixels);
  const [width, height] = [small.width * FINENESS, small.height * FINENESS];
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.imageSmoothingQuality = "high";
  context.drawImage(small, 0, 0, width, height);
  if (isCrisp(pixels)) sharpen(context, width, height);
  return canvas;
}

function isCrisp(pixels) {
  const ink = atob(pixels);
  for (let i = 0; i < ink.length; i += 1) if (ink.charCodeAt(i) % 255) return false;
  return true;
}

function sharpen(context, width, height) {
  const image = context.getImageData(0, 0, width, height);
  for (let i = 3; i < image.data.length; i += 4) image.data[i] = STEEPNESS * (image.data[i] - 127.5) + 127.5;
  context.putImageData(image, 0, 0);
}

export function picture(pixels, label = "") {
  const canvas = document.createElement("canvas");
  canvas.className = "ink";
  if (label) {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
  }
  return paintSmooth(canvas, pixels);
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
  canvases.forEach((canvas, i) => {
    const x = gap + (i % columns) * (width + gap), y = gap + Math.floor(i / columns) * (height + gap);
    context.drawImage(canvas, x, y, width, height);
  });
  return new Promise((done) => page.toBlob(done, "image/png"));
}

const LARGEST = 1024;

export const decode = (file) => createImageBitmap(file);

/** What the browser has read, as base64 PNG of at most 1024 pixels a side. */
export function readImage(bitmap) {
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
