/** A grid of new examples of a card, of a class, or of the whole memory; each can be kept, or varied. */

import * as api from "./api.js";
import { newest } from "./newest.js";
import { download, picture, sheet } from "./pixels.js";

const COLUMNS = 6, ROWS = 3;
const element = (id) => document.getElementById(id);

export class Imaginer {
  /** `keep` and `vary` get an image as { pixels, label }. */
  constructor(view, fail, { keep, vary }) {
    this.view = view;
    this.images = [];
    this.chosen = -1;
    this.grid = element("grid");
    this.ask = newest(api.imagine, (answer) => this.show(answer), (error) => {
      this.wait(false);
      fail(error);
    });
    this.grid.replaceChildren(...Array.from({ length: COLUMNS * ROWS }, cell));
    this.grid.addEventListener("click", (event) => this.choose(this.place(event.target.closest("button"))));
    element("imagine").addEventListener("click", () => this.refresh());
    element("temperature").addEventListener("input", () => this.warm());
    element("download").addEventListener("click", () => this.save());
    element("keep-tile").addEventListener("click", () => keep(this.images[this.chosen]));
    element("vary-tile").addEventListener("click", () => vary(this.images[this.chosen]));
  }

  /** New examples of what is selected now. */
  refresh() {
    const empty = this.view.cards.length === 0;
    this.scope = this.scopeNow();
    element("imagine").disabled = empty;
    if (empty) return this.rest();
    this.wait(true);
    this.ask({ ...this.view.selection, count: COLUMNS * ROWS, temperature: Number(element("temperature").value) });
  }

  /** New examples, if others are selected than before: a memory that has grown changes nothing here. */
  follow() {
    if (this.scope !== this.scopeNow()) this.refresh();
  }

  scopeNow() {
    return this.view.cards.length ? JSON.stringify(this.view.selection) : "nothing";
  }

  rest() {
    this.ask.cancel();
    element("download").disabled = true;
    this.images = [];
    this.choose(-1);
    for (const each of this.grid.children) each.replaceChildren();
  }

  warm() {
    element("temperature-value").value = Number(element("temperature").value).toFixed(1);
    this.refresh();
  }

  wait(on) {
    for (const each of this.grid.children) each.classList.toggle("waiting", on);
  }

  show({ images }) {
    const names = new Map(this.view.cards.map((card) => [card.id, card.label]));
    this.images = images.map(({ pixels, card }) => ({ pixels, label: names.get(card) ?? "imagined" }));
    this.images.forEach(({ pixels, label }, i) => {
      const tile = this.grid.children[i];
      tile.replaceChildren(picture(pixels));
      tile.disabled = false;
      tile.title = label;
      tile.setAttribute("aria-label", `Imagined ${label}, ${i + 1} of ${images.length}`);
    });
    this.choose(-1);
    this.wait(false);
    element("download").disabled = false;
  }

  place(tile) {
    const place = tile ? [...this.grid.children].indexOf(tile) : -1;
    return place === this.chosen ? -1 : place;
  }

  /** One of the tiles, to keep or to vary; -1 for none. */
  choose(place) {
    this.chosen = this.images[place] ? place : -1;
    [...this.grid.children].forEach((each, i) => each.setAttribute("aria-pressed", i === this.chosen));
    const label = this.images[this.chosen]?.label;
    element("tile").classList.toggle("none", !label);
    element("tile").hidden = this.images.length === 0;
    for (const id of ["keep-tile", "vary-tile"]) element(id).hidden = !label;
    element("tile-what").textContent = label ? `Imagined from a card of ${label}` : "Choose one to keep or vary it.";
    element("keep-tile").textContent = `Keep as ${label}`;
  }

  async save() {
    const canvases = [...this.grid.querySelectorAll("canvas")];
    download(await sheet(canvases, COLUMNS), "imagined.png");
  }
}

function cell() {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "cell";
  made.disabled = true;
  made.setAttribute("aria-label", "Nothing imagined yet");
  return made;
}
