/** A pad to draw on, with a finger, a pen, a mouse or the arrow keys. Strokes are lines in the unit square. */

import { base64, getSize } from "./pixels.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const isUndo = (event) => event.key === "z" && (event.ctrlKey || event.metaKey);
const SHARPNESS = 8; // pixels of the exported drawing for each of the model's

export class Pad {
  /** `changed` is called after every change; pen widths are in pixels of the model. */
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed;
    this.width = 2;
    this.strokes = [];
    this.pointer = null; // the pointer that is drawing
    this.pen = null; // where the keyboard's pen is, and whether it is down
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => this.end(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) this.point(); });
    canvas.addEventListener("blur", () => { this.pen = null; this.render(); });
    new ResizeObserver(() => this.render()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.render());
  }

  get empty() { return this.strokes.length === 0; }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  begin(event) {
    if (this.pointer !== null || event.button !== 0) return;
    this.pointer = event.pointerId;
    this.canvas.setPointerCapture(event.pointerId);
    this.pen = null;
    this.strokes.push({ width: this.width, points: [this.place(event)] });
    this.update();
  }

  move(event) {
    if (event.pointerId !== this.pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) this.strokes.at(-1)?.points.push(this.place(each));
    this.update();
  }

  end(event) {
    if (event.pointerId === this.pointer) this.pointer = null;
  }

  key(event) {
    if (event.key in ARROWS) this.step(ARROWS[event.key], event.shiftKey ? 3 : 1);
    else if (event.key === " ") this.toggle();
    else if (!this.empty && (event.key === "Backspace" || isUndo(event))) this.undo();
    else if (event.key === "Delete") this.clear();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Show the keyboard's pen. */
  point() {
    this.pen ??= { at: [0.5, 0.5], down: false };
    this.render();
  }

  step([dx, dy], far) {
    const [height, width] = getSize();
    this.point();
    const [x, y] = this.pen.at;
    const inside = (value) => Math.min(1, Math.max(0, value));
    this.pen.at = [inside(x + (dx * far) / width), inside(y + (dy * far) / height)];
    if (this.pen.down) {
      this.strokes.at(-1).points.push(this.pen.at);
      this.update();
    } else this.render();
  }

  toggle() {
    this.point();
    this.pen.down = !this.pen.down;
    if (this.pen.down) this.strokes.push({ width: this.width, points: [this.pen.at] });
    this.update();
  }

  lift() {
    this.pointer = null;
    if (this.pen) this.pen.down = false;
  }

  undo() {
    this.lift();
    this.strokes.pop();
    this.update();
  }

  clear() {
    this.lift();
    this.strokes = [];
    this.update();
  }

  update() {
    this.render();
    this.changed();
  }

  render() {
    const { canvas } = this, ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio].map(Math.round);
    if (!width || !height) return;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
    context.clearRect(0, 0, width, height);
    this.trace(context, width, height, style.color);
    if (this.pen) {
      const [x, y] = this.pen.at, unit = width / getSize()[1];
      context.beginPath();
      context.arc(x * width, y * height, unit * 0.9, 0, 2 * Math.PI);
      context.lineWidth = Math.max(2, unit * 0.25);
      context.strokeStyle = style.getPropertyValue("--accent");
      context.stroke();
      if (this.pen.down) { context.fillStyle = style.getPropertyValue("--accent"); context.fill(); }
    }
  }

  trace(context, width, height, colour) {
    Object.assign(context, { lineCap: "round", lineJoin: "round", strokeStyle: colour, fillStyle: colour });
    for (const stroke of this.strokes) {
      const points = stroke.points.map(([x, y]) => [x * width, y * height]);
      context.lineWidth = (stroke.width * width) / getSize()[1];
      context.beginPath();
      if (points.every(([x, y]) => x === points[0][0] && y === points[0][1])) {
        context.arc(...points[0], context.lineWidth / 2, 0, 2 * Math.PI); // a line of no length is no ink everywhere
        context.fill();
      } else {
        for (const point of points) context.lineTo(...point);
        context.stroke();
      }
    }
  }

  /** The drawing, black on white, as base64 PNG. */
  image() {
    const [height, width] = getSize().map((side) => side * SHARPNESS);
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, width, height);
    this.trace(context, width, height, "black");
    return base64(canvas);
  }
}
