/** What the memory makes of the drawing: p(a|x) on the cards, the class, the score, the reconstruction. */

import { newest, post } from "./api.js";
import { paint } from "./pixels.js";
import { nats, percent } from "./words.js";

const CLASSES = 4; // shown
const PAUSE = 50; // milliseconds between two questions while drawing
const PATIENCE = 1500; // milliseconds until a pending answer is asked for again
const element = (id) => document.getElementById(id);

export class Recogniser {
  /** `view` is the memory; `fail` is told what went wrong; `answered` gets every answer, or null. */
  constructor(pad, view, fail, answered) {
    this.pad = pad;
    this.view = view;
    this.answered = answered;
    const ask = () => (pad.empty ? null : post("recognise", { image: pad.image() }));
    this.ask = newest(ask, (answer) => answer && this.show(answer), fail, PAUSE);
  }

  /** Ask again: the drawing or the memory has changed. */
  refresh() {
    if (this.pad.empty || this.view.cards.length === 0) {
      this.ask.cancel();
      this.rest();
    } else this.ask();
  }

  rest() {
    const nothing = "The memory is empty: remember a drawing, or load a few examples.";
    const waiting = "Draw something that is in the memory, or something like it: the answer appears here.";
    element("answer").hidden = true;
    element("no-reading").hidden = false;
    element("no-reading").textContent = this.view.cards.length ? waiting : nothing;
    this.view.bars(null);
    this.answered(null);
  }

  show(answer) {
    const [best] = answer.classes;
    element("no-reading").hidden = true;
    element("answer").hidden = false;
    element("class").textContent = best.label;
    element("probability").textContent = percent(best.probability);
    element("classes").replaceChildren(...answer.classes.slice(0, CLASSES).map(classRow));
    this.view.bars(new Map(answer.cards.map((card) => [card.id, card.probability])));
    paint(element("target"), answer.target);
    paint(element("reconstruction"), answer.reconstruction);
    const card = this.view.cards.find((each) => each.id === answer.card);
    if (card) paint(element("chosen"), card.pixels);
    showNumbers(answer);
    this.answered(answer);
    clearTimeout(this.later);
    if (answer.pending) this.later = setTimeout(() => this.refresh(), PATIENCE);
  }
}

function classRow({ label, probability }) {
  const row = document.createElement("li"), bar = document.createElement("span");
  bar.className = "bar";
  bar.append(document.createElement("i"));
  bar.style.setProperty("--p", probability);
  row.append(span("label", label), bar, span("share", percent(probability)));
  return row;
}

function span(name, text) {
  const made = document.createElement("span");
  made.className = name;
  made.textContent = made.title = text;
  return made;
}

function showNumbers({ log_likelihood, bits_per_pixel, novel, pending, reason, kl_a, kl_z }) {
  const novelty = element("novelty");
  const unknown = pending ? "…" : "needs more cards";
  novelty.textContent = novel === null ? unknown : novel ? "new to this memory" : "like what it knows";
  novelty.title = reason;
  novelty.classList.toggle("novel", novel === true);
  element("score").textContent = nats(log_likelihood);
  element("bits").textContent = `${bits_per_pixel.toFixed(2)} bits`;
  element("kl-a").textContent = nats(kl_a);
  element("kl-z").textContent = nats(kl_z);
}
