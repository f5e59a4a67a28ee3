/** One sentence at the bottom of the page, for a while; of a change, with a button that takes it back. */

const element = (id) => document.getElementById(id);
const SHORT = 4500, LONG = 12_000; // milliseconds
let timer = 0, back = null;

export function note(sentence, undo = null) {
  back = undo;
  element("note-text").textContent = sentence;
  element("note-undo").hidden = undo === null;
  element("note").classList.add("shown");
  wait(undo === null ? SHORT : LONG);
}

function wait(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (element("note").matches(":hover, :focus-within")) wait(SHORT);
    else close();
  }, milliseconds);
}

function close() {
  element("note").classList.remove("shown");
  element("note-undo").hidden = true;
}

element("note-undo").addEventListener("click", () => {
  close();
  back?.();
});
