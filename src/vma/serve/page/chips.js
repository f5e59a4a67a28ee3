/** Names that would fit the drawing, each a chip: a tap writes it into the field, and nothing else is done. */

const MOST = 3, LEAST = 0.01; // chips, and the probability of the last
const element = (id) => document.getElementById(id);

export class Chips {
  constructor() {
    this.names = [];
    this.tapped = null; // the name that was written by a tap
    element("chips").addEventListener("click", (event) => this.tap(event.target.closest("button")));
    element("name").addEventListener("input", () => this.mark());
  }

  /** The names of an answer; of none, no chips. `fresh` is the name that nobody has used yet. */
  show(answer, fresh) {
    const known = (answer?.classes ?? []).filter(({ probability }) => probability >= LEAST).slice(0, MOST);
    const names = known.map(({ label }) => label);
    element("name").placeholder = `Name, or ${fresh}`;
    if (names.join("\n") !== this.names.join("\n")) {
      this.names = names;
      element("chips").replaceChildren(...names.map(chip));
    }
    this.mark();
  }

  tap(button) {
    if (!button) return;
    this.tapped = button.getAttribute("aria-pressed") === "true" ? null : button.textContent;
    element("name").value = this.tapped ?? "";
    this.mark();
  }

  /** The drawing is gone, and with it a name that was tapped for it; a name that was typed stays. */
  forget() {
    if (element("name").value === this.tapped) element("name").value = "";
    this.tapped = null;
    this.mark();
  }

  mark() {
    for (const each of element("chips").children) {
      each.setAttribute("aria-pressed", each.textContent === element("name").value.trim());
    }
  }
}

function chip(name) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "chip";
  made.textContent = name;
  return made;
}
