/** One sentence at the bottom of the page, for a moment. */

const element = document.getElementById("note");
let timer = 0;

export function note(sentence) {
  element.textContent = sentence;
  element.classList.add("shown");
  clearTimeout(timer);
  timer = setTimeout(() => element.classList.remove("shown"), 4500);
}
