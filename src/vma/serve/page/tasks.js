/** What a small screen shows: one task at a time, chosen by the tabs; and the three steps of a first visit. */

const element = (id) => document.getElementById(id);
const SEEN = "vma-steps-seen";

export function turnTo(task) {
  element("tasks").dataset.task = task;
  for (const tab of element("tabs").children) {
    if (tab.dataset.task === task) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  if (isSmall()) scrollTo(0, 0);
}

const isSmall = () => matchMedia("(max-width: 640px)").matches;

export function steps(on) {
  element("steps").hidden = !on;
  element("show-steps").setAttribute("aria-expanded", on);
  if (!on) remember();
}

/** Show the steps to who has not seen them. */
export function welcome() {
  steps(!seen());
}

function seen() {
  try {
    return localStorage.getItem(SEEN) !== null;
  } catch {
    return false; // a browser may keep nothing
  }
}

function remember() {
  try {
    localStorage.setItem(SEEN, "1");
  } catch { /* then it is explained again */ }
}

export function listenForTasks() {
  element("tabs").addEventListener("click", (event) => {
    const task = event.target.closest("button")?.dataset.task;
    if (!task) return;
    if (isSmall()) steps(false);
    turnTo(task);
  });
  element("show-steps").addEventListener("click", () => {
    steps(element("steps").hidden);
    if (!element("steps").hidden) element("steps").scrollIntoView({ block: "nearest" });
  });
  element("close-steps").addEventListener("click", () => {
    steps(false);
    turnTo("draw");
    element("pad").focus({ preventScroll: true });
  });
}
