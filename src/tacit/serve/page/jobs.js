// Files: which columns hold text, the upload, and the jobs of this key with progress, cancel and downloads.

import { events, getJson, hasKey, request } from "./api.js";
import { columnsOf, formatOf } from "./columns.js";
import { counted, download, find, make, showProblem } from "./dom.js";

const AGAIN_AFTER = 1500;
const FINAL = new Set(["done", "failed", "canceled", "expired"]);
/** States that read better in another word. */
const STATES = { queued: "waiting", expired: "deleted" };
const NOT_READ =
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
  const shown = new Map();
  const sent = new WeakSet();

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
    show(job, true);
    find("jobs-announce").textContent = `${job.name} was sent.`;
    find("jobs-title").scrollIntoView({ block: "nearest" });
  };

  const load = async () => {
    showProblem(find("jobs-problem"), null);
    try {
      const { jobs } = await getJson("v1/jobs");
      for (const job of jobs) show(job, false);
    } catch (error) {
      showProblem(find("jobs-problem"), error, load);
    }
  };

  const show = (job, atTop) => {
    let entry = shown.get(job.id);
    if (!entry) {
      entry = { element: make("li", {}), following: false };
      shown.set(job.id, entry);
      find("jobs")[atTop ? "prepend" : "append"](entry.element);
    }
    find("jobs-empty").hidden = true;
    paint(entry, job);
    if (!FINAL.has(job.state) && !entry.following) {
      entry.following = true;
      follow(entry, job);
    }
  };

  const paint = (entry, job) => {
    const problem = make("div", { role: "alert" });
    const isOver = FINAL.has(job.state);
    const name = job.name || "A file";
    const act = async (doing) => {
      try {
        await doing();
      } catch (error) {
        showProblem(problem, error);
      }
    };
    const path = pathOf(job);
    const cancel = async () => paint(entry, await getJson(path, { method: "DELETE" }));
    const remove = async () => {
      await request(path, { method: "DELETE" });
      shown.delete(job.id);
      entry.element.remove();
      find("jobs-empty").hidden = shown.size > 0;
      find("jobs-announce").textContent = `${name} was deleted.`;
    };
    const goOn = async () => show(await getJson(`${path}/resume`, { method: "POST" }), false);
    const button = (label, doing) => {
      const given = { type: "button", class: "quiet", "aria-label": `${label} ${name}`, onclick: () => act(doing) };
      return make("button", given, label);
    };
    const ending = isOver ? button("Delete", remove) : button("Cancel", cancel);
    const buttons = job.resumable ? [button("Go on", goOn), ending] : [ending];
    entry.element.replaceChildren(
      make("div", { class: "row" }, make("h3", {}, name), make("span", {}, buttons)),
      make("p", { class: "note" }, stateLine(job)),
      isOver ? "" : progressOf(job),
      job.error ? make("p", { class: "problem" }, job.error) : "",
      ...(job.state === "done" ? results(job, problem) : []),
      problem,
    );
  };

  /** Listen until the job is over; a broken connection is tried again, the job goes on without it. */
  const follow = async (entry, job) => {
    let now = job;
    while (!FINAL.has(now.state) && shown.has(job.id)) {
      try {
        for await (const event of events(`${pathOf(job)}/events`)) {
          now = { ...now, ...event.data };
          if (event.name !== "progress") now.state = event.name;
          if (shown.has(job.id)) paint(entry, now);
          if (FINAL.has(now.state)) break;
        }
      } catch (error) {
        if (error.status && error.status < 500 && error.status !== 429) break;
      }
      if (!FINAL.has(now.state)) await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER));
    }
    if (FINAL.has(now.state)) find("jobs-announce").textContent = `${now.name}: ${STATES[now.state] ?? now.state}.`;
    entry.following = false;
  };

  return { take, send, load, wasSent: () => file !== null && sent.has(file) };
}

const pathOf = (job) => `v1/jobs/${encodeURIComponent(job.id)}`;

function stateLine(job) {
  const rows = job.rows ? `, ${counted(job.rows, "row")}` : "";
  const until = job.state === "done" ? `, kept until ${time(job.expires)}` : "";
  return `${STATES[job.state] ?? job.state}${rows}${until}`;
}

export const time = (given) => new Date(given).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });

function progressOf(job) {
  const started = job.state === "running" && job.total_bytes > 0;
  return make("progress", {
    max: job.total_bytes || 1,
    value: started ? String(Math.min(job.bytes_done, job.total_bytes)) : null,
    "aria-label": `Progress of ${job.name}`,
  });
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
  const linked = links.map(([label, end, name]) => link(label, `${pathOf(job)}/${end}`, job, name, problem));
  return [sentence, make("p", { class: "downloads" }, "Download: ", linked)];
}

/** A plain link where no key is needed, so that large files stream to the disk; with a key the file is fetched. */
function link(label, path, job, name, problem) {
  const save = async (event) => {
    if (!hasKey()) return;
    event.preventDefault();
    try {
      download(name, await (await request(path)).blob());
    } catch (error) {
      showProblem(problem, error);
    }
  };
  const about = `Download ${label} of ${job.name}`;
  return make("a", { href: path, download: name, onclick: save, "aria-label": about }, label);
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
