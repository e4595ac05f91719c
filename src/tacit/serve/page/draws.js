// Several draws of one text side by side, and what they cost together.

import { counted, make, number, percent } from "./dom.js";
import { shareChanged, wordsOf } from "./words.js";

const OF_EXAMPLE = "The example is public. On a text of your own, these draws would have spent:";
const OF_TEXT = "On this text, the draws of this page have spent:";
const APART = "These promises are measured in different ways; no proof adds them up to one number.";
const ADVICE =
  "Choosing one of several draws by looking at them spends what all of them cost, because the choice depends on the " +
  "text. To spend less, draw once and share that.";

/** "epsilon 6 per word and unit of distance, from 3 draws" for each kind of promise. */
export function totalLines(totals) {
  return totals.map((total) => {
    const delta = total.delta ? `, delta ${number(total.delta)}` : "";
    const from = `from ${counted(total.draws, "draw")} with ${total.mechanisms.join(" and ")}`;
    return total.private ? `epsilon ${number(total.epsilon)} ${total.per}${delta}, ${from}` : `no guarantee, ${from}`;
  });
}

export function showDraws(place, { draws, totals, isExample, again }) {
  if (!draws.length) {
    place.replaceChildren(make("p", { class: "empty" }, "No draws of this text yet."));
    return;
  }
  const heading = isExample ? OF_EXAMPLE : OF_TEXT;
  const lines = totalLines(totals).map((line) => make("li", {}, line));
  place.replaceChildren(
    budgetBar(draws),
    make(
      "div",
      { class: "spent" },
      make("p", {}, heading),
      make("ul", {}, lines),
      totals.length > 1 ? make("p", { class: "note" }, APART) : null,
    ),
    isExample ? "" : make("p", { class: "note" }, ADVICE),
    make("p", {}, make("button", { type: "button", onclick: again }, "Draw once more")),
    make("ol", { class: "draws" }, draws.map(drawItem)),
  );
}

/** One block for each draw, as wide as its epsilon. Different kinds of promises start a new line. */
function budgetBar(draws) {
  const kinds = [...new Set(draws.map((draw) => draw.kind))];
  const bars = kinds.map((kind) => {
    const parts = draws.map((draw, index) => ({ draw, index })).filter(({ draw }) => draw.kind === kind);
    let total = 0;
    const blocks = parts.map(({ draw, index }) => {
      total += draw.epsilon;
      const block = make("span", {}, make("b", {}, String(index + 1)), make("small", {}, `ε ${number(total)}`));
      block.style.flexGrow = String(draw.epsilon);
      return block;
    });
    return make("div", { class: "bar" }, blocks);
  });
  return make("div", { class: "bars", "aria-hidden": "true" }, bars);
}

function drawItem(draw, index) {
  const share = draw.pieces ? `, ${percent(shareChanged(draw.pieces))} changed` : "";
  return make(
    "li",
    {},
    make("h3", {}, `Draw ${index + 1}`),
    make("p", { class: "note" }, `${draw.title}, epsilon ${number(draw.epsilon)}${share}`),
    make("div", { class: "reading small" }, wordsOf(draw.text, draw.pieces)),
  );
}
