// The privacy card of the last answer, in plain words.

import { STILL, content, html, markdown } from "./card.js";
import { fileButton, make, sentenceCase } from "./dom.js";

/**
 * `answer` is the last one; `draws` counts all of the text and `spent` says what they cost together. `attacker` says what
 * the best one guesses, where that is known: then it comes first, and the proven bound, whose powers of ten tell most
 * readers nothing, can be opened below.
 */
export function showPromise(place, { answer, draws, spent, attacker }) {
  if (!answer) {
    const why = "The promise is made by the code that draws, so it comes with the first draw.";
    place.replaceChildren(make("p", { class: "empty" }, why));
    return;
  }
  const parts = content(answer);
  const items = (texts) => texts.map((text) => make("li", {}, text));
  const numbers = parts.numbers.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  const rests = make("ul", {}, items([...parts.assumptions, ...parts.learned]));
  const bound = [
    make("p", { class: "plain reading" }, parts.plain),
    parts.totals.length ? totalsTable(parts.totals, parts.heading) : "",
  ];
  const wasOpen = place.querySelector("details.bound")?.open;
  place.replaceChildren(
    parts.isPrivate ? "" : make("p", { class: "problem" }, "There is no guarantee."),
    ...(attacker ? guesses(attacker) : bound),
    draws > answer.draws.length ? earlier(answer.draws.length, draws, spent) : "",
    attacker ? make("details", { class: "bound", open: wasOpen }, make("summary", {}, "The proven bound"), bound) : "",
    make("h3", {}, STILL),
    make("ul", { class: "still" }, items(parts.still)),
    make("details", {}, make("summary", {}, "What it rests on"), rests),
    make("details", {}, make("summary", {}, "All numbers"), make("dl", {}, numbers)),
    make(
      "p",
      { class: "downloads" },
      "Download the card: ",
      fileButton("card.json", "application/json", () => `${JSON.stringify(answer.guarantee, null, 2)}\n`),
      fileButton("card.md", "text/markdown", () => markdown(parts, spent)),
      fileButton("card.html", "text/html", () => html(parts, spent)),
    ),
  );
}

const guesses = ({ sentence, how }) => [
  make("p", { class: "attacker plain reading" }, sentence),
  make("p", { class: "note" }, `This is ${how}.`),
];

/** The card knows of one answer only, so the page says what came before it. */
function earlier(last, all, spent) {
  const covered = `This card covers the last ${last} of ${all} draws.`;
  return make("p", { class: "note" }, `${covered} All together: ${spent.join("; ")}.`);
}

function totalsTable(totals, heading) {
  const head = ["For", sentenceCase(heading), "Protection"].map((text) => make("th", { scope: "col" }, text));
  const rows = totals.map(({ what, bound, strength }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, what),
      make("td", { "data-label": heading }, superscript(bound)),
      make("td", { "data-label": "protection" }, strength),
    ),
  );
  return make("table", { class: "stacking" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
}

/** "e^13.2 = 10^6" with raised exponents. */
function superscript(text) {
  return text.split(/(\^[\d.,e+-]*\d)/).map((part) => (part.startsWith("^") ? make("sup", {}, part.slice(1)) : part));
}
