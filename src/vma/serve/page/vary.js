/** z around one card: a map of two directions, a point on it, and the image at that point. */

import { newest, post } from "./api.js";
import { paint, picture } from "./pixels.js";

const REACH = 2.5; // standard deviations from the middle to the edge
const SIDE = 5; // images along a side of the map
const STEP = 0.25;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const element = (id) => document.getElementById(id);

export class Varier {
  constructor(fail) {
    this.card = undefined;
    this.seed = 0;
    this.at = [0, 0];
    this.plane = element("plane");
    const ask = (points) => post("vary", { card: this.card, seed: this.seed, points });
    this.askMap = newest(ask, ({ images }) => this.showMap(images), fail);
    this.askPoint = newest(ask, ({ images }) => paint(element("varied"), images[0]), fail);
    this.plane.addEventListener("pointerdown", (event) => this.grab(event));
    this.plane.addEventListener("pointermove", (event) => this.drag(event));
    this.plane.addEventListener("keydown", (event) => this.key(event));
    element("centre").addEventListener("click", () => this.go(0, 0));
    element("directions").addEventListener("click", () => { this.seed += 1; this.refresh(); });
  }

  /** Vary this card from now on; null where there is none. */
  show(card) {
    if (card === this.card) return;
    this.card = card;
    this.at = [0, 0];
    this.refresh();
  }

  refresh() {
    this.askMap.cancel();
    this.askPoint.cancel();
    const none = this.card === null;
    for (const id of ["centre", "directions"]) element(id).disabled = none;
    element("handle").hidden = none;
    if (none) {
      element("tiles").replaceChildren();
      element("varied").width = element("varied").width; // empties it
      return;
    }
    const places = Array.from({ length: SIDE }, (_, i) => REACH * 0.8 * ((2 * i) / (SIDE - 1) - 1));
    this.askMap(places.flatMap((y) => places.map((x) => [x, y])));
    this.go(...this.at);
  }

  showMap(images) {
    element("tiles").replaceChildren(...images.map((pixels) => picture(pixels)));
  }

  go(x, y) {
    const inside = (value) => Math.min(REACH, Math.max(-REACH, value));
    this.at = [inside(x), inside(y)];
    const share = this.at.map((value) => `${50 + (50 * value) / REACH}%`);
    Object.assign(element("handle").style, { left: share[0], top: share[1] });
    const [across, down] = this.at.map((value) => value.toFixed(2));
    this.plane.setAttribute("aria-valuenow", across);
    this.plane.setAttribute("aria-valuetext", `${across} across, ${down} down`);
    if (this.card !== null) this.askPoint([this.at]);
  }

  grab(event) {
    if (event.button !== 0) return;
    this.plane.setPointerCapture(event.pointerId);
    this.drag(event);
  }

  drag(event) {
    if (!this.plane.hasPointerCapture(event.pointerId)) return;
    const box = this.plane.getBoundingClientRect();
    const place = (value, from, length) => REACH * (2 * ((value - from) / length) - 1);
    this.go(place(event.clientX, box.left, box.width), place(event.clientY, box.top, box.height));
  }

  key(event) {
    if (event.key in ARROWS) {
      const [x, y] = ARROWS[event.key];
      this.go(this.at[0] + x * STEP, this.at[1] + y * STEP);
    } else if (event.key === "Home") this.go(0, 0);
    else return;
    event.preventDefault();
  }
}
