// Files that are rewritten text by text: which columns hold text, the upload, and what a finished job gives.

import { getJson, request } from "./api.js";
import { columnsOf, formatOf } from "./columns.js";
import { find, make, showProblem } from "./dom.js";
import { pathOf, resultLink, startJobList } from "./joblist.js";

export const NOT_READ =
  "This file cannot be read here. Its name must end in .txt (one text per line), .csv, .tsv, .jsonl or .parquet, all but " +
  "parquet also with .gz. Save a PDF, a spreadsheet or a document of an office program as one of these first.";
const CHOICES = [
  ["rewrite", "Rewrite"],
  ["keep", "Copy as it is"],
  ["drop", "Leave out"],
];

/** The file part of the desk; `changed` hears that another file was chosen or the file was sent. */
export function startJobs(settings, changed) {
  let file = null;
  let read = () => ({ columns: [], keep: [] });
  let number = 0;
  const sent = new WeakSet();
  const list = startJobList("jobs", "rewrite", results);

  const take = async (given) => {
    file = given;
    number += 1;
    const mine = number;
    find("file-name").textContent = given.name;
    if (formatOf(given.name) === null) {
      file = null;
      read = () => ({ columns: [], keep: [] });
      find("columns").replaceChildren(make("p", { class: "note", role: "alert" }, NOT_READ));
      changed();
      return;
    }
    find("columns").replaceChildren(make("p", { class: "note" }, "Reading the names of the columns …"));
    const names = await columnsOf(given);
    if (mine !== number) return;
    const fields = names === null ? typedColumns() : names.length ? chosenColumns(names) : lines();
    find("columns").replaceChildren(fields.element);
    read = fields.read;
    changed();
  };
  find("file").addEventListener("change", () => find("file").files[0] && take(find("file").files[0]));

  const send = async () => {
    if (!file) throw new Error("Choose a file first.");
    const body = new FormData();
    body.append("settings", JSON.stringify({ ...settings.asked(), ...read(), user_column: null, dataset: null }));
    body.append("file", file);
    const job = await (await request("v1/jobs", { method: "POST", body })).json();
    sent.add(file);
    changed();
    list.sent(job);
  };

  return { take, send, load: list.load, wasSent: () => file !== null && sent.has(file) };
}

function results(job, problem) {
  const file = `rewritten.${job.format}`;
  const links = [["the file", "result", file]];
  // Cells that a spreadsheet would take for formulas get an apostrophe, which changes texts; so it is a choice.
  if (["csv", "tsv"].includes(job.format)) links.push(["the file for a spreadsheet", "result?spreadsheet=true", file]);
  for (const kind of ["html", "md", "json"]) links.push([`card.${kind}`, `card.${kind}`, `${file}.card.${kind}`]);
  const sentence = make("p", { class: "reading small" });
  getJson(`${pathOf(job)}/card.json`).then(
    (card) => (sentence.textContent = card.sentence),
    (error) => showProblem(problem, error),
  );
  const linked = links.map(([label, end, name]) => resultLink(label, end, job, name, problem));
  return [sentence, make("p", { class: "downloads" }, "Download: ", linked)];
}

// Which columns ------------------------------------------------------------------------------------------------------

const lines = () => ({
  element: make("p", { class: "note" }, "Each line is one text."),
  read: () => ({ columns: [], keep: [] }),
});

const COPIED = "Nothing protects a column that is copied: a date or a name beside a text can say more than the text.";

function chosenColumns(names) {
  const text = names.length === 1 ? names[0] : names.find((name) => name === "text");
  const fields = names.map((name, index) => {
    const chosen = name === text ? "rewrite" : "drop";
    const choices = CHOICES.map(([value, label]) => {
      const given = { type: "radio", name: `column-${index}`, value, checked: value === chosen };
      return make("label", {}, make("input", given), make("span", {}, label));
    });
    return make("fieldset", { class: "column" }, make("legend", {}, name), choices);
  });
  const picked = (wanted) => names.filter((_, index) => fields[index].querySelector("input:checked").value === wanted);
  return {
    element: make("div", {}, fields, make("p", { class: "note" }, COPIED)),
    read: () => {
      const columns = picked("rewrite");
      if (!columns.length) throw new Error("Choose at least one column to rewrite.");
      return { columns, keep: picked("keep") };
    },
  };
}

function typedColumns() {
  const rewrite = make("input", { type: "text", id: "typed-columns", autocomplete: "off" });
  const keep = make("input", { type: "text", id: "typed-keep", autocomplete: "off" });
  const split = (field) => field.value.split(",").map((name) => name.trim()).filter(Boolean);
  return {
    element: make("div", {},
      make("p", { class: "note" }, "The names of the columns cannot be read here. Type them, with commas between."),
      make("label", { for: "typed-columns" }, "Columns to rewrite"), rewrite,
      make("label", { for: "typed-keep" }, "Columns to copy as they are"), keep),
    read: () => ({ columns: split(rewrite), keep: split(keep) }),
  };
}
