// What has been released with this key, and what is left.

import { getJson } from "./api.js";
import { counted, find, make, number, showProblem } from "./dom.js";
import { time } from "./joblist.js";

const HOW_COUNTED =
  "An upper bound: every text counts as if all were about one person. The public examples of this page count nothing.";
const NOT_ADDED = "Different units are not added up: each line stands for itself.";
const WITHOUT = "Without an epsilon, because none is proven for a whole text: ";
/** What an epsilon of each unit is about. */
const UNITS = {
  token: "Word by word, over the largest distance of two words, added up for whole texts",
  document: "Whole texts at once",
};

export async function showLedger() {
  const place = find("ledger");
  showProblem(find("ledger-problem"), null);
  place.replaceChildren(make("p", { class: "empty" }, "Loading …"));
  try {
    const ledger = await getJson("v1/ledger");
    place.replaceChildren(budget(ledger.key), limits(ledger.dataset_limits), releases(ledger.releases));
  } catch (error) {
    place.replaceChildren();
    showProblem(find("ledger-problem"), error, showLedger);
  }
}

function budget({ name, spent, limit }) {
  const who = name === "local" ? "This server, without keys," : name;
  const nothing = spent.by_unit.length + spent.apart.length === 0;
  const reading = limit
    ? `${who} has spent epsilon ${number(spent.epsilon)} of its limit of ${number(limit.epsilon)}.`
    : `${who} has ${nothing ? "spent nothing" : "spent, without a limit"}${nothing ? "." : ":"}`;
  const share = limit && { max: limit.epsilon, value: spent.epsilon, "aria-label": "Spent share of the budget" };
  return make(
    "div",
    { class: "spent" },
    make("p", { class: "reading" }, reading),
    share ? make("meter", share) : null,
    make("ul", {}, [...spent.by_unit.map(unitLine), ...without(spent.apart)]),
    make("p", { class: "note" }, HOW_COUNTED, spent.by_unit.length > 1 && !limit ? ` ${NOT_ADDED}` : ""),
  );
}

function unitLine({ unit, epsilon, delta, releases }) {
  const sum = `epsilon ${number(epsilon)}${delta ? ` and delta ${number(delta)}` : ""}`;
  return make("li", {}, `${UNITS[unit] ?? `Per ${unit}`}: ${sum} in ${counted(releases, "release")}.`);
}

/** One line for all that has no sum, with the kinds of promises in it. */
function without(apart) {
  if (!apart.length) return [];
  const all = apart.reduce((sum, { releases }) => sum + releases, 0);
  const kinds = apart.map(({ measure, releases }) => make("li", {}, `${counted(releases, "release")}: ${measure}`));
  const summary = make("summary", {}, `${WITHOUT}${counted(all, "release")}.`);
  return [make("li", {}, make("details", {}, summary, make("ul", {}, kinds)))];
}

function limits(all) {
  if (!all.length) return "";
  const line = ({ kind, dataset, epsilon, delta }) => {
    const where = dataset ? ` of ${dataset}` : "";
    return `each ${kind}${where}: epsilon ${number(epsilon)}${delta ? `, delta ${number(delta)}` : ""}`;
  };
  const lines = all.map((one) => make("li", {}, line(one)));
  return make("div", {}, make("h2", { class: "label" }, "Limits"), make("ul", {}, lines));
}

/** Releases that follow each other and differ in nothing but their time, as one row with their number. */
export function grouped(all) {
  const rows = [];
  for (const release of all) {
    const { id, time: when, ...facts } = release;
    const same = JSON.stringify(facts);
    const last = rows.at(-1);
    if (last?.same === same) {
      last.count += 1;
      last.first = when;
    } else rows.push({ ...facts, same, count: 1, last: when, first: when });
  }
  return rows;
}

function releases(all) {
  if (!all.length) return make("p", { class: "empty" }, "Nothing has been released yet.");
  const head = ["Time", "Releases", "Data set", "Mechanism", "Unit", "Epsilon of one release", "Delta", "State"];
  const cells = ({ first, last, count, dataset, mechanism, unit, epsilon, delta, state }) => [
    time(first) === time(last) ? time(last) : `${time(first)} to ${time(last)}`,
    String(count),
    dataset,
    mechanism,
    unit,
    epsilon === null ? "not proven" : number(epsilon),
    delta === null ? "not proven" : number(delta),
    state,
  ];
  const row = (texts, tag, given) => make("tr", {}, texts.map((text) => make(tag, given, text)));
  return make(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Releases" },
    make(
      "table",
      {},
      make("thead", {}, row(head, "th", { scope: "col" })),
      make("tbody", {}, grouped(all).map((one) => row(cells(one), "td", {}))),
    ),
    make("p", { class: "note" }, "Releases in a row that differ in nothing but their time are one line."),
  );
}
