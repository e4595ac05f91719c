// A rewritten text with its changed words marked by a tint and a line, so that color is never the only sign. The
// original of a word shows on hover, on focus (arrow keys go from word to word) or, for all at once, above the words.

import { find, make } from "./dom.js";

/** Whether a pair of tokens differs; the tokenization lower-cases, so case alone is no change. */
export const isChanged = ([before, after]) => before.toLowerCase() !== after.toLowerCase();

export const shareChanged = (pieces) => (pieces.length ? pieces.filter(isChanged).length / pieces.length : 0);

/** What stands before each new token in the text (spaces, mostly); null where the tokens are not the text's. */
export function gaps(text, pieces) {
  const found = [];
  let position = 0;
  for (const [, token] of pieces) {
    const start = text.indexOf(token, position);
    if (start < 0 || text.slice(position, start).trim() !== "") return null;
    found.push(text.slice(position, start));
    position = start + token.length;
  }
  return text.slice(position).trim() === "" ? found : null;
}

/** The text as elements. Without pieces (document level) it is plain, since no word belongs to another. */
export function wordsOf(text, pieces) {
  if (text === "") return make("p", { class: "empty" }, "The rewritten text is empty.");
  const paragraph = make("p", { class: "words" });
  if (!pieces) {
    paragraph.append(text);
    return paragraph;
  }
  const between = gaps(text, pieces) ?? pieces.map((_, index) => (index ? " " : ""));
  pieces.forEach((piece, index) => {
    paragraph.append(between[index], isChanged(piece) ? changedWord(piece) : piece[1]);
  });
  const words = [...paragraph.querySelectorAll(".changed")];
  if (words.length) words[0].tabIndex = 0;
  paragraph.addEventListener("keydown", (event) => moveAmong(words, event));
  return paragraph;
}

function changedWord([before, after]) {
  const parts = [make("span", { class: "original" }, before), make("span", { class: "after" }, after)];
  return make("span", { class: "changed", tabindex: "-1", "data-original": before }, parts);
}

function moveAmong(words, event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const here = words.indexOf(document.activeElement);
  if (here < 0) return;
  let next = step ? here + step : { Home: 0, End: words.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  next = Math.min(Math.max(next, 0), words.length - 1);
  words[here].tabIndex = -1;
  words[next].tabIndex = 0;
  words[next].focus();
}

/** One tooltip for all words of the page. Escape hides it. */
export function startTips() {
  const tip = find("tip");
  let shown = null;
  const hide = () => {
    shown?.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  };
  const show = (word) => {
    hide();
    if (word.querySelector(".original").offsetHeight) return; // the original already stands above the word
    shown = word;
    tip.textContent = `was “${word.dataset.original}”`;
    tip.hidden = false;
    word.setAttribute("aria-describedby", "tip");
    const box = word.getBoundingClientRect();
    const width = tip.offsetWidth;
    const most = document.documentElement.clientWidth - width - 8;
    const left = Math.min(Math.max(box.left + box.width / 2 - width / 2, 8), most);
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 4 ? box.bottom + 6 : above}px`;
  };
  const wordAt = (event) => (event.target instanceof Element ? event.target.closest(".changed") : null);
  document.addEventListener("mouseover", (event) => {
    const word = wordAt(event);
    if (word) show(word);
    else if (shown && event.target !== tip && document.activeElement !== shown) hide();
  });
  document.addEventListener("focusin", (event) => (wordAt(event) ? show(wordAt(event)) : hide()));
  document.addEventListener("focusout", hide);
  document.addEventListener("click", (event) => wordAt(event)?.focus());
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", hide, { passive: true, capture: true });
}
