/** What the memory makes of the drawing: p(a|x) on the cards, the class, the score, the reconstruction. */

import * as api from "./api.js";
import { newest } from "./newest.js";
import { paint } from "./pixels.js";
import { nats, percent } from "./words.js";

const CLASSES = 4; // shown
const PAUSE = 50; // milliseconds between two questions while drawing
const PATIENCE = 1500; // milliseconds until a pending answer is asked for again
const element = (id) => document.getElementById(id);

export class Recogniser {
  /** `view` is the memory; `answered` gets every answer, or null. */
  constructor(pad, view, answered) {
    this.pad = pad;
    this.view = view;
    this.answered = answered;
    const ask = () => (pad.empty ? null : api.recognise(pad.image()));
    this.ask = newest(ask, (answer) => answer && this.show(answer), (error) => this.fail(error), PAUSE);
  }

  /** Ask again: the drawing or the memory has changed. */
  refresh() {
    if (this.pad.empty || this.view.cards.length === 0) {
      this.ask.cancel();
      this.rest();
    } else this.ask();
  }

  rest() {
    const drawn = this.pad.empty ? "" : "The memory is empty: give it a name, and it is remembered.";
    const nothing = "The memory is empty: remember a drawing, or load the examples.";
    const waiting = "Here you see which cards your drawing is like, and how the model rebuilds it from one.";
    this.say(drawn || (this.view.cards.length ? "Draw, and it is recognised." : "Draw any character."));
    this.hide(this.view.cards.length ? waiting : nothing);
  }

  /** While somebody draws nothing is an error: the sentence stands where the answer would. */
  fail(error) {
    this.say(error.message);
    this.hide("");
  }

  hide(sentence) {
    element("answer").hidden = true;
    element("no-reading").hidden = false;
    element("no-reading").textContent = sentence;
    this.view.bars(null);
    this.answered(null);
  }

  /** Under the pad: a quiet sentence, or the class with what is known of it. */
  say(sentence, strong = "", state = "") {
    if (element("class").textContent !== strong) element("class").textContent = strong;
    element("probability").textContent = sentence;
    element("verdict").dataset.state = state;
  }

  show(answer) {
    element("no-reading").hidden = true;
    element("answer").hidden = false;
    this.say(...headline(answer));
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

function headline({ novel, pending, classes }) {
  const [{ label, probability }] = classes;
  if (novel) return [`closest to ${label}`, "New", "new"];
  if (novel === null && !pending) return ["is the closest: four or more cards tell what is new", label, "known"];
  return [percent(probability), label, "known"];
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
