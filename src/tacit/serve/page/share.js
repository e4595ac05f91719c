// The first view: a file, its text and label columns, an epsilon, and a corpus that may be shared in place of its rows.
//
// Only names of columns and the number of rows are found out here, in the browser. The file is sent when the button is
// pressed, and every release spends its budget: the page never sends by itself.

import { postJson, request } from "./api.js";
import { columnsOf, formatOf, rowsOf } from "./columns.js";
import { corpusParts } from "./corpus.js";
import { counted, debounced, find, make, number, showProblem } from "./dom.js";
import { epsilonField } from "./epsilon.js";
import { startGuide } from "./guide.js";
import { NOT_READ } from "./jobs.js";
import { resultLink, startJobList } from "./joblist.js";

const ASK_WAIT = 300;
const USUAL_TEXT = ["text", "texts", "message", "body", "content", "sentence", "review", "note", "question", "utterance"];
const USUAL_LABEL = ["label", "labels", "intent", "category", "class", "topic", "sentiment", "rating", "stars"];
const NONE = "";
const [LOW, HIGH, USUAL] = [0.1, 10, 1];
const ROUNDS = 2;

export function startShare() {
  let file = null;
  let names = null;
  let rows = null;
  let turn = 0;
  const sent = new WeakSet();
  const list = startJobList("corpora", "synthesize", (job, problem) => [
    make("p", { class: "downloads" }, "Download: ", downloads(job, problem)),
    ...corpusParts(job, problem),
  ]);
  const epsilon = epsilonField(find("share-slider"), find("share-epsilon"), () => changed());
  epsilon.range(LOW, HIGH);
  epsilon.set(USUAL);

  const take = async (given) => {
    turn += 1;
    const mine = turn;
    file = given;
    names = rows = null;
    find("share-name").textContent = given.name;
    showProblem(find("share-problem"), null);
    if (formatOf(given.name) === null) {
      file = null;
      showProblem(find("share-problem"), new Error(NOT_READ));
    } else {
      const [columns, count] = await Promise.all([columnsOf(given), rowsOf(given)]);
      if (mine !== turn) return;
      [names, rows] = [columns, count];
      fillColumns();
    }
    changed();
  };

  const fillColumns = () => {
    const listed = names ?? [];
    const text = listed.find((name) => USUAL_TEXT.includes(name.toLowerCase())) ?? listed[0];
    const label = listed.find((name) => name !== text && USUAL_LABEL.includes(name.toLowerCase()));
    fill("share-text", listed, text, listed.length ? null : "each line is a text");
    fill("share-label", listed, label, "no labels: find topics");
    fill("share-label-2", listed, undefined, "no second column");
    fill("share-user", listed, undefined, "one row is one secret");
  };

  const fill = (id, listed, chosen, none) => {
    const options = listed.map((name) => make("option", { value: name, selected: name === chosen }, name));
    if (none !== null) options.unshift(make("option", { value: NONE, selected: chosen === undefined }, none));
    find(id).replaceChildren(...options);
  };

  /** What the form says, as the service takes it; an error where something is missing. */
  const settings = () => {
    if (!file) throw new Error("Choose a file first.");
    return {
      epsilon: epsilon.value,
      column: find("share-text").value || null,
      ...labelSettings(),
      evolve: find("share-evolve").checked ? ROUNDS : 0,
      user_column: find("share-user").value || null,
      pure: find("share-pure").checked,
      sentences: find("lengths-auto").checked ? "auto" : publicSentences(),
    };
  };

  const changed = () => {
    const chosen = file !== null;
    find("share-form").hidden = !chosen;
    find("share-labels").hidden = !find("share-label").value;
    find("share-more").hidden = !find("share-label").value;
    find("labels-list-2").disabled = find("labels-declared").checked;
    find("labels-list").disabled = find("labels-declared").checked;
    find("share-sentences").disabled = find("lengths-auto").checked;
    find("share-rows").textContent = rowsLine(rows, find("share-user").value);
    const again = chosen && sent.has(file);
    find("share-cost").textContent = costLine(epsilon.value, find("share-user").value, again);
    find("share-cost").classList.toggle("warning", again);
    if (chosen) expectSoon();
  };

  const expect = async () => {
    const mine = turn;
    const labels = find("share-label").value ? Math.max(2, listedLabels("labels-list").length) : null;
    try {
      const expected = await postJson("v1/expect", {
        epsilon: epsilon.value,
        rows: rows ?? 1000,
        labels,
        pure: find("share-pure").checked,
      });
      if (mine === turn) find("share-expect").replaceChildren(...expectation(expected, rows, epsilon.value));
    } catch (error) {
      showProblem(find("share-expect"), error, expect);
    }
  };
  const expectSoon = debounced(expect, ASK_WAIT);

  const send = async () => {
    const button = find("share-go");
    if (button.hasAttribute("data-busy")) return; // a second press does not spend twice
    showProblem(find("share-problem"), null);
    button.setAttribute("data-busy", "");
    try {
      const body = new FormData();
      body.append("settings", JSON.stringify(settings()));
      body.append("file", file);
      const job = await (await request("v1/jobs/synthesize", { method: "POST", body })).json();
      sent.add(file);
      changed();
      list.sent(job);
    } catch (error) {
      showProblem(find("share-problem"), error);
    }
    button.removeAttribute("data-busy");
  };

  find("share-file").addEventListener("change", () => find("share-file").files[0] && take(find("share-file").files[0]));
  const fields = ["share-text", "share-label", "share-label-2", "share-user", "labels-declared", "labels-listed", "labels-list"];
  for (const id of [...fields, "lengths-auto", "lengths-public", "share-pure"]) {
    find(id).addEventListener("change", changed);
  }
  find("share-go").addEventListener("click", send);
  startGuide();
  changed();
  return { take, load: list.load };
}

/** One column of labels, two, or none, and which labels there are; an error where they are not listed. */
function labelSettings() {
  const label = find("share-label").value || null;
  const second = (label && find("share-label-2").value) || null;
  const declared = Boolean(label && find("labels-declared").checked);
  const [labels, others] = [listedLabels("labels-list"), listedLabels("labels-list-2")];
  if (label && !declared && !labels.length) {
    throw new Error("List the labels, or say that those in the file are no secret.");
  }
  if (second === label && label) throw new Error("Choose another column as the second one.");
  if (second && !declared && !others.length) throw new Error("List the labels of the second column, too.");
  if (!second) return { label_column: label, labels: label && !declared ? labels : [], declare_labels_public: declared };
  const listed = declared ? {} : { [label]: labels, [second]: others };
  return { label_columns: [label, second], labels_of: listed, declare_labels_public: declared };
}

/** The public number of sentences of a text; an error where it is none. */
function publicSentences() {
  const count = Number(find("share-sentences").value);
  if (!Number.isInteger(count) || count < 1 || count > 100) throw new Error("Say how many sentences, from 1 to 100.");
  return count;
}

const listedLabels = (id) =>
  find(id).value.split(/[\n,]/).map((label) => label.trim()).filter(Boolean);

// Sentences ----------------------------------------------------------------------------------------------------------

function rowsLine(rows, user) {
  if (rows === null) return "How many rows there are cannot be told here; the server counts them.";
  return `About ${counted(rows, "row")}, counted here in your browser.${user ? " A person may have several of them." : ""}`;
}

function costLine(epsilon, user, again) {
  const whom = user ? "every person in the file" : "every row of the file";
  const repeated = again ? " This file was sent before: another release of it adds up." : "";
  return `Spends epsilon ${number(epsilon)} once, for ${whom}: text, length and label are covered.${repeated}`;
}

function expectation({ delta, count_noise: noise, share_noise: share, measured, measured_epsilon: at }, rows, epsilon) {
  const promise =
    `No event becomes more than ${number(Math.exp(epsilon))} times as probable by one row` +
    (delta ? ` (plus ${number(delta)} on every probability). ` : ". ") +
    `Counts of rows per label are right to within ${counted(Math.round(noise), "row")}` +
    (rows ? ` (${(share * 100).toPrecision(2)} points of 100).` : ".");
  const parts = [make("p", { class: "note" }, promise)];
  if (measured.length) {
    const heading = `What learners reached with so many rows of public data sets, at epsilon ${number(at)}:`;
    const lines = measured.map((sentence) => make("li", {}, sentence));
    parts.push(make("details", { class: "field" }, make("summary", {}, heading), make("ul", { class: "note" }, lines)));
  }
  return parts;
}

function downloads(job, problem) {
  const links = [
    ["the corpus", "result", "corpus.csv"],
    ["for a spreadsheet", "result?spreadsheet=true", "corpus.csv"],
    ["the sketch", "sketch", "sketch.tacit"],
    ["the report", "report", "report.html"],
    ["the attribution", "attribution", "ATTRIBUTION.txt"],
    ...["html", "md", "json"].map((kind) => [`card.${kind}`, `card.${kind}`, `corpus.csv.card.${kind}`]),
  ];
  return links.map(([label, end, name]) => resultLink(label, end, job, name, problem));
}
