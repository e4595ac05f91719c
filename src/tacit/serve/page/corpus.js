// A released corpus at a glance: the promise in five lines, a map, proportions, and rows of each label. All of it is
// public: the service makes it of what was released.

import { getJson } from "./api.js";
import { make, showProblem } from "./dom.js";
import { pathOf } from "./joblist.js";

const TAGS = new Set(["svg", "text", "line", "rect", "circle", "path"]);
const SHOWN_OPEN = 1;

/** The parts of a finished job; they fill themselves when the service has answered. */
export function corpusParts(job, problem) {
  const place = make("div", { class: "corpus", "aria-busy": "true" });
  getJson(`${pathOf(job)}/view`).then(
    (view) => {
      place.replaceChildren(...partsOf(view));
      place.removeAttribute("aria-busy");
    },
    (error) => showProblem(problem, error),
  );
  return [place];
}

function partsOf(view) {
  return [
    make("p", { class: "reading small" }, view.summary),
    make("h4", {}, "Released rows"),
    make("p", { class: "note" }, "Of each label five that fit it best by the release, then five at random."),
    ...view.labels.map(rowsOfLabel),
    make("h4", {}, "The promise"),
    make("dl", {}, view.card.flatMap(([name, words]) => [make("dt", {}, name), make("dd", {}, words)])),
    figure("Where the rows lie among public sentences", view.map, view.labels),
    figure("How many rows each label has", view.proportions),
    ...(view.curve ? [figure("What a smaller epsilon would do", view.curve)] : []),
  ];
}

function rowsOfLabel({ name, rows }, index) {
  const lines = rows.map((row) => make("li", {}, row));
  return make("details", { class: "label-rows", open: index < SHOWN_OPEN },
    make("summary", {}, name), make("ul", {}, lines));
}

function figure(title, { svg, description }, labels = []) {
  const key = labels.slice(0, 24).map(({ name, color }) => make("li", { class: `key-${color}` }, name));
  return make("figure", {},
    make("h4", {}, title), drawing(svg), key.length ? make("ul", { class: "key" }, key) : null,
    make("figcaption", { class: "note" }, description));
}

/** The drawing of the service as elements. It is of our own making; all the same nothing but shapes and words is taken
 * over. */
export function drawing(svg) {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  for (const element of [parsed, ...parsed.querySelectorAll("*")]) {
    if (!TAGS.has(element.tagName)) element.remove();
    for (const { name } of [...element.attributes]) {
      if (name.startsWith("on") || name === "style" || name.includes("href")) element.removeAttribute(name);
    }
  }
  return document.importNode(parsed, true);
}
