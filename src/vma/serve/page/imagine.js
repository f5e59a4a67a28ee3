/** A grid of new examples of a card, of a class, or of the whole memory. */

import { newest, post } from "./api.js";
import { download, picture, sheet } from "./pixels.js";

const COLUMNS = 6, ROWS = 3;
const element = (id) => document.getElementById(id);

export class Imaginer {
  constructor(view, fail) {
    this.view = view;
    this.grid = element("grid");
    this.ask = newest((message) => post("imagine", message), (answer) => this.show(answer), (error) => {
      this.wait(false);
      fail(error);
    });
    this.grid.replaceChildren(...Array.from({ length: COLUMNS * ROWS }, cell));
    element("imagine").addEventListener("click", () => this.refresh());
    element("temperature").addEventListener("input", () => this.warm());
    element("download").addEventListener("click", () => this.save());
  }

  /** New examples of what is selected now. */
  refresh() {
    const empty = this.view.cards.length === 0;
    element("imagine").disabled = empty;
    if (empty) return this.rest();
    this.wait(true);
    this.ask({ ...this.view.selection, count: COLUMNS * ROWS, temperature: Number(element("temperature").value) });
  }

  rest() {
    this.ask.cancel();
    element("download").disabled = true;
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
    images.forEach(({ pixels, card }, i) => {
      const label = `Imagined from a card of ${names.get(card) ?? "the memory"}`;
      this.grid.children[i].replaceChildren(picture(pixels, label));
      this.grid.children[i].title = names.get(card) ?? "";
    });
    this.wait(false);
    element("download").disabled = false;
  }

  async save() {
    const canvases = [...this.grid.querySelectorAll("canvas")];
    download(await sheet(canvases, COLUMNS), "imagined.png");
  }
}

function cell() {
  const made = document.createElement("div");
  made.className = "cell";
  made.setAttribute("role", "listitem");
  return made;
}
