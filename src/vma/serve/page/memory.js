/** The memory: cards in groups of one name, a selection among them, and the bars of p(a|x). */

import { picture } from "./pixels.js";
import { number, percent } from "./words.js";

export class MemoryView {
  /** `selected` is called when the selection changes; `forget` and `rename` when a key asks for them. */
  constructor(groups, { selected, forget, rename }) {
    this.groups = groups;
    this.selected = selected;
    this.cards = [];
    this.elements = new Map(); // by id
    this.selection = {}; // { card } or { label } or nothing: the whole memory
    groups.addEventListener("click", (event) => this.click(event.target.closest("button")));
    groups.addEventListener("keydown", (event) => {
      if (event.key === "Delete" || event.key === "F2") {
        this.choose(this.selectionOf(event.target.closest("button")));
        (event.key === "Delete" ? forget : rename)();
      } else if (event.key in STEPS) this.walk(STEPS[event.key]);
      else return;
      event.preventDefault();
    });
  }

  show(cards) {
    const focused = this.focusedPlace();
    this.cards = cards;
    const known = new Set(cards.map((card) => card.id));
    for (const id of this.elements.keys()) if (!known.has(id)) this.elements.delete(id);
    const byLabel = new Map();
    for (const card of cards) byLabel.set(card.label, [...(byLabel.get(card.label) ?? []), card]);
    this.groups.replaceChildren(...[...byLabel].map(([label, some]) => this.group(label, some)));
    const { card, label } = this.selection;
    if ((card && !known.has(card)) || (label !== undefined && !byLabel.has(label))) this.selection = {};
    this.choose(this.selection);
    if (focused >= 0) this.buttons()[Math.min(focused, this.buttons().length - 1)]?.focus();
  }

  group(label, cards) {
    const group = document.createElement("div"), title = document.createElement("button");
    const row = document.createElement("div");
    group.className = "group";
    row.className = "cards";
    title.type = "button";
    title.textContent = title.title = label;
    title.dataset.label = label;
    title.setAttribute("aria-label", `All of ${label}, ${number(cards.length, "card")}`);
    row.append(...cards.map((card) => this.card(card)));
    group.append(title, row);
    return group;
  }

  card({ id, label, pixels }) {
    let element = this.elements.get(id);
    if (!element) {
      element = document.createElement("button");
      element.type = "button";
      element.className = "card";
      element.dataset.card = id;
      const bar = document.createElement("div");
      bar.className = "bar";
      bar.append(document.createElement("i"));
      element.append(picture(pixels), bar);
      this.elements.set(id, element);
    }
    element.dataset.name = label;
    this.describe(element);
    return element;
  }

  describe(element, share) {
    const read = share === undefined ? "" : `, read with probability ${percent(share)}`;
    element.setAttribute("aria-label", `Card ${element.dataset.name}${read}`);
    element.title = share === undefined ? element.dataset.name : `${element.dataset.name}: ${percent(share)}`;
  }

  /** p(a|x) on every card, as a map from id to probability; null takes the bars away. */
  bars(shares) {
    this.groups.classList.toggle("asked", shares !== null);
    const best = shares && Math.max(...shares.values());
    for (const [id, element] of this.elements) {
      const share = shares?.get(id);
      element.style.setProperty("--p", share ?? 0);
      element.classList.toggle("winner", share !== undefined && share === best);
      this.describe(element, share);
    }
  }

  click(button) {
    if (!button) return;
    const next = this.selectionOf(button);
    const same = next.card === this.selection.card && next.label === this.selection.label;
    this.choose(same ? {} : next);
  }

  selectionOf(button) {
    const { card, label } = button?.dataset ?? {};
    return card !== undefined ? { card } : label !== undefined ? { label } : {};
  }

  choose(selection) {
    this.selection = selection;
    for (const button of this.buttons()) {
      const { card, label } = this.selectionOf(button);
      const on = card !== undefined ? card === selection.card : label === selection.label && label !== undefined;
      button.setAttribute("aria-pressed", on);
    }
    this.selected(selection);
  }

  /** The cards that the selection stands for. */
  chosen() {
    const { card, label } = this.selection;
    if (card !== undefined) return this.cards.filter((each) => each.id === card);
    return label === undefined ? this.cards : this.cards.filter((each) => each.label === label);
  }

  buttons() { return [...this.groups.querySelectorAll("button")]; }

  focusedPlace() { return this.buttons().indexOf(document.activeElement); }

  walk(step) {
    const buttons = this.buttons();
    buttons[Math.min(buttons.length - 1, Math.max(0, this.focusedPlace() + step))]?.focus();
  }
}

const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };
