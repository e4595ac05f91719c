// What has been released with this key, and what is left.

import { getJson } from "./api.js";
import { counted, find, make, number, showProblem } from "./dom.js";
import { time } from "./jobs.js";

const HOW_COUNTED =
  "The sum counts every text as if all were about one person; draws of the public example count like any other.";

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
  const sum = `epsilon ${number(spent.epsilon)} in ${counted(spent.releases, "release")}`;
  const most = limit ? `of ${number(limit.epsilon)}` : "without a limit";
  const share = limit && { max: limit.epsilon, value: spent.epsilon, "aria-label": "Spent share of the budget" };
  return make(
    "div",
    { class: "spent" },
    make("p", { class: "reading" }, `${who} has spent ${sum}, ${most}.`),
    share ? make("meter", share) : null,
    make("p", { class: "note" }, HOW_COUNTED),
    ...(spent.apart ?? []).map(apart),
  );
}

function apart({ measure, releases }) {
  const what = counted(releases, "release");
  return make("p", { class: "note" }, `Not in the sum, because no plain epsilon is proven: ${what} (${measure}).`);
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

function releases(all) {
  if (!all.length) return make("p", { class: "empty" }, "Nothing has been released yet.");
  const head = ["Time", "Data set", "Mechanism", "Unit", "Epsilon charged", "Delta", "State"];
  const cells = ({ time: when, dataset, mechanism, unit, epsilon, delta, state }) => [
    time(when),
    dataset,
    mechanism,
    unit,
    epsilon === null ? "not proven" : number(epsilon),
    number(delta ?? 0),
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
      make("tbody", {}, all.map((one) => row(cells(one), "td", {}))),
    ),
  );
}
