// Audit reports and experiment results. A report is a page of its own, shown in a frame that may do nothing.

import { getJson } from "./api.js";
import { find, make, showProblem } from "./dom.js";
import { time } from "./joblist.js";

const KINDS = { audit: "Audit", experiment: "Experiment", evaluate: "Evaluation" };

export async function showReports() {
  const list = find("reports");
  showProblem(find("reports-problem"), null);
  list.replaceChildren(make("li", { class: "empty" }, "Loading …"));
  try {
    const { reports } = await getJson("v1/reports");
    if (!reports.length) {
      list.replaceChildren();
      const write = make("code", {}, "tacit audit mechanism santext --epsilon 2 --html reports/santext.html");
      const serve = make("code", {}, "tacit serve --reports reports");
      const how = ["No reports yet. Write one with ", write, " and start the service with ", serve, "."];
      find("report").replaceChildren(make("p", { class: "empty" }, how));
      return;
    }
    list.replaceChildren(...reports.map(reportItem));
    if (!find("report").firstChild) find("report").append(make("p", { class: "empty" }, "Choose a report."));
  } catch (error) {
    list.replaceChildren();
    showProblem(find("reports-problem"), error, showReports);
  }
}

function reportItem(report) {
  const about = `${KINDS[report.kind] ?? report.kind}, ${time(report.created)}`;
  const lines = [make("b", {}, report.title || report.name), make("small", {}, about)];
  const open = make("button", { type: "button", class: "report" }, lines);
  open.addEventListener("click", () => {
    for (const other of find("reports").querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    open.setAttribute("aria-current", "true");
    show(report);
  });
  return make("li", {}, open);
}

/** A frame cannot send a key, so the list gives an address that works for a while without one. */
async function show(report) {
  showProblem(find("reports-problem"), null);
  let address;
  try {
    const { reports } = await getJson("v1/reports");
    address = reports.find((one) => one.name === report.name)?.url;
  } catch (error) {
    showProblem(find("reports-problem"), error, () => show(report));
    return;
  }
  if (!address) {
    showProblem(find("reports-problem"), new Error("This report is no longer there."), showReports);
    return;
  }
  const path = address.replace(/^\//, "");
  const apart = make("a", { href: path, target: "_blank", rel: "noopener" }, "Open in a tab of its own");
  find("report").replaceChildren(
    make("p", { class: "note" }, apart),
    make("iframe", { src: path, sandbox: "", title: report.title || report.name }),
  );
}
