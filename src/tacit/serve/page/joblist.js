// The jobs of this key of one kind: progress, cancel, go on, delete, and what a finished one gives.

import { events, getJson, hasKey, request } from "./api.js";
import { counted, download, find, make, showProblem } from "./dom.js";

const AGAIN_AFTER = 1500;
const FINAL = new Set(["done", "failed", "canceled", "expired"]);
/** States that read better in another word. */
const STATES = { queued: "waiting", expired: "deleted" };

/** A list of jobs in the elements `${name}`, `${name}-empty`, `${name}-problem`, `${name}-announce`. `kind` says which
 * jobs; `results` gives the elements of a finished one. */
export function startJobList(name, kind, results) {
  const shown = new Map();

  const load = async () => {
    showProblem(find(`${name}-problem`), null);
    try {
      const { jobs } = await getJson("v1/jobs");
      for (const job of jobs) if (job.kind === kind) show(job, false);
    } catch (error) {
      showProblem(find(`${name}-problem`), error, load);
    }
  };

  const show = (job, atTop) => {
    let entry = shown.get(job.id);
    if (!entry) {
      entry = { element: make("li", {}), following: false };
      shown.set(job.id, entry);
      find(name)[atTop ? "prepend" : "append"](entry.element);
    }
    find(`${name}-empty`).hidden = true;
    paint(entry, job);
    if (!FINAL.has(job.state) && !entry.following) {
      entry.following = true;
      follow(entry, job);
    }
  };

  const paint = (entry, job) => {
    const problem = make("div", { role: "alert" });
    const isOver = FINAL.has(job.state);
    const title = job.name || "A file";
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
      find(`${name}-empty`).hidden = shown.size > 0;
      announce(`${title} was deleted.`);
    };
    const goOn = async () => show(await getJson(`${path}/resume`, { method: "POST" }), false);
    const button = (label, doing) => {
      const given = { type: "button", class: "quiet", "aria-label": `${label} ${title}`, onclick: () => act(doing) };
      return make("button", given, label);
    };
    const ending = isOver ? button("Delete", remove) : button("Cancel", cancel);
    const buttons = job.resumable ? [button("Go on", goOn), ending] : [ending];
    entry.element.replaceChildren(
      make("div", { class: "row" }, make("h3", {}, title), make("span", {}, buttons)),
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
    if (FINAL.has(now.state)) announce(`${now.name}: ${STATES[now.state] ?? now.state}.`);
    entry.following = false;
  };

  const announce = (sentence) => (find(`${name}-announce`).textContent = sentence);

  const sent = (job) => {
    show(job, true);
    announce(`${job.name} was sent.`);
    find(`${name}-title`).scrollIntoView({ block: "nearest" });
  };

  return { load, sent };
}

export const pathOf = (job) => `v1/jobs/${encodeURIComponent(job.id)}`;

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

/** A plain link where no key is needed, so that large files stream to the disk; with a key the file is fetched. */
export function resultLink(label, end, job, name, problem) {
  const path = `${pathOf(job)}/${end}`;
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
