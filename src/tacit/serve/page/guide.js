// Which way fits: the plain questions of the guide, and its advice. Only answers are sent; no file is looked at.

import { postJson, request } from "./api.js";
import { find, make, number, showProblem } from "./dom.js";

export function startGuide() {
  let asked = false;
  const load = async () => {
    if (asked || !find("guide").open) return;
    asked = true;
    showProblem(find("guide-problem"), null);
    try {
      const { questions } = await (await request("v1/guide")).json();
      find("guide-questions").replaceChildren(...questions.filter(({ choices }) => choices.length).map(question));
    } catch (error) {
      asked = false;
      showProblem(find("guide-problem"), error, load);
    }
  };
  find("guide").addEventListener("toggle", load);
  find("guide-form").addEventListener("submit", (event) => {
    event.preventDefault();
    advise();
  });
  load();
}

function question({ fields: [field], sentence, choices }) {
  const options = choices.map(({ name, meaning }, place) =>
    make(
      "label",
      { class: "inline" },
      make("input", { type: "radio", name: `guide-${field}`, value: name, checked: place === usual(field, choices) }),
      " ",
      make("span", {}, make("strong", {}, name), `: ${meaning}`),
    ),
  );
  return make("fieldset", { class: "field plain-set", "data-field": field }, make("legend", {}, sentence), options);
}

/** The page is about sharing a corpus of texts that its user holds: these answers are chosen at first. */
function usual(field, choices) {
  const names = { protect: "text", seen_by: "curator", purpose: "share" };
  return Math.max(0, choices.findIndex(({ name }) => name === names[field]));
}

async function advise() {
  showProblem(find("guide-problem"), null);
  const answers = {};
  for (const set of find("guide-questions").querySelectorAll("fieldset")) {
    answers[set.dataset.field] = set.querySelector("input:checked").value;
  }
  const rows = Number(find("guide-rows").value);
  if (rows >= 1) answers.private_rows = Math.floor(rows);
  try {
    find("guide-advice").replaceChildren(...shown(await postJson("v1/guide", answers)));
  } catch (error) {
    showProblem(find("guide-problem"), error, advise);
  }
}

function shown(advice) {
  const here = advice.job === "synthesize" ? "This page does it: choose the file below." : null;
  return [
    make("h2", { class: "label" }, `Epsilon ${number(advice.epsilon)} for one ${advice.unit}`),
    here && make("p", {}, here),
    make("p", {}, advice.promise),
    make("pre", { class: "command" }, advice.commands.join("\n")),
    list("What it does not cover", advice.not_covered),
    list("What to expect, measured on public data sets", advice.expected),
    list("For comparison", advice.compared),
    list("Good to know", advice.remarks),
  ].filter(Boolean);
}

function list(heading, lines) {
  if (!lines.length) return null;
  return make("details", { class: "field" }, make("summary", {}, heading),
    make("ul", { class: "note" }, lines.map((line) => make("li", {}, line))));
}
