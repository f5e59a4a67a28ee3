/** z around one image: a map of two directions, a point on it, and the image at that point. */

import * as api from "./api.js";
import { newest } from "./newest.js";
import { paintSmooth, picture } from "./pixels.js";

const REACH = 2.5; // standard deviations from the middle to the edge
const SIDE = 5; // images along a side of the map
const BUTTONS = ["centre", "directions", "main-directions", "across", "down"];
const element = (id) => document.getElementById(id);

export class Varier {
  /** `keep` gets an image as { pixels, label }. */
  constructor(fail, keep) {
    this.subject = null; // { card, label } or { pixels, label }
    this.seed = 0;
    this.at = [0, 0];
    this.plane = element("plane");
    const ask = (points) => {
      const { card, pixels } = this.subject;
      return api.vary({ ...(card ? { card } : { pixels }), seed: this.seed, points });
    };
    this.askMap = newest(ask, ({ images }) => this.showMap(images), fail);
    this.askPoint = newest(ask, ({ images }) => this.showPoint(images[0]), fail);
    this.plane.addEventListener("pointerdown", (event) => this.grab(event));
    this.plane.addEventListener("pointermove", (event) => this.drag(event));
    for (const id of ["across", "down"]) element(id).addEventListener("input", () => this.slide());
    element("centre").addEventListener("click", () => this.go(0, 0));
    element("directions").addEventListener("click", () => this.turn(this.seed + 1));
    element("main-directions").addEventListener("click", () => this.turn(0));
    element("keep-varied").addEventListener("click", () => keep({ pixels: this.shown, label: this.subject.label }));
  }

  /** Vary this from now on: { card, label }, { pixels, label }, or null where there is nothing. */
  show(subject) {
    const same = (key) => subject?.[key] === this.subject?.[key];
    const known = this.subject !== undefined && ["card", "pixels", "label"].every(same);
    this.subject = subject;
    if (known && subject !== null) return;
    this.at = [0, 0];
    this.seed = 0;
    this.refresh();
  }

  turn(seed) {
    this.seed = seed;
    this.refresh();
  }

  refresh() {
    this.askMap.cancel();
    this.askPoint.cancel();
    const none = this.subject === null;
    for (const id of BUTTONS) element(id).disabled = none;
    element("handle").hidden = none;
    element("main-directions").hidden = this.seed === 0;
    element("keep-varied").hidden = true;
    if (none) {
      element("tiles").replaceChildren();
      element("varied").width = element("varied").width; // empties it
      return;
    }
    element("keep-varied").textContent = `Keep as ${this.subject.label}`;
    const places = Array.from({ length: SIDE }, (_, i) => REACH * 0.8 * ((2 * i) / (SIDE - 1) - 1));
    this.askMap(places.flatMap((y) => places.map((x) => [x, y])));
    this.go(...this.at);
  }

  showMap(images) {
    element("tiles").replaceChildren(...images.map((pixels) => picture(pixels)));
  }

  showPoint(pixels) {
    this.shown = pixels;
    paintSmooth(element("varied"), pixels);
    element("keep-varied").hidden = false;
  }

  go(x, y) {
    const inside = (value) => Math.min(REACH, Math.max(-REACH, value));
    this.at = [inside(x), inside(y)];
    const share = this.at.map((value) => `${50 + (50 * value) / REACH}%`);
    Object.assign(element("handle").style, { left: share[0], top: share[1] });
    ["across", "down"].forEach((id, i) => {
      element(id).value = this.at[i];
      element(id).setAttribute("aria-valuetext", spoken(this.at[i]));
    });
    if (this.subject !== null) this.askPoint([this.at]);
  }

  slide() {
    this.go(Number(element("across").value), Number(element("down").value));
  }

  grab(event) {
    if (event.button !== 0 || this.subject === null) return;
    this.plane.setPointerCapture(event.pointerId);
    this.drag(event);
  }

  drag(event) {
    if (!this.plane.hasPointerCapture(event.pointerId)) return;
    const box = this.plane.getBoundingClientRect();
    const place = (value, from, length) => REACH * (2 * ((value - from) / length) - 1);
    this.go(place(event.clientX, box.left, box.width), place(event.clientY, box.top, box.height));
  }
}

function spoken(value) {
  const size = Math.abs(value).toFixed(2);
  return Number(size) === 0 ? "typical" : `${size} ${value < 0 ? "less" : "more"} than typical`;
}
