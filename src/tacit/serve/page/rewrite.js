// The desk: a text, how to rewrite it, what came out, what was promised and what has been spent.
//
// A draw of a private text costs budget, so the page draws only on purpose: the public example, which the server knows
// and charges to nobody, follows the settings by itself, a text of your own waits for the button. What was drawn is added up until "New text" is pressed; editing the
// text does not start a new count, since an edited text is still about the same person.

import { added, kind, perUnitOf } from "./budget.js";
import { getJson, postJson } from "./api.js";
import { counted, debounced, fileButton, find, make, number, percent, roundedDown, showProblem } from "./dom.js";
import { showDraws, totalLines } from "./draws.js";
import { showPromise } from "./promise.js";
import { startCompare } from "./compare.js";
import { startCurve } from "./curve.js";
import { EXAMPLES } from "./examples.js";
import { startJobs } from "./jobs.js";
import { startSettings } from "./settings.js";
import { isChanged, shareChanged, wordsOf } from "./words.js";

const PREVIEW_WAIT = 250;
const MOST_DRAWS = 10;
const WAITING = "Nothing was drawn yet. Press the button when the settings are right.";
const NOTHING = "Nothing was drawn; why, stands below the button.";
/** Answers after which the same request may well succeed: no connection, too many requests, too much to do. */
const PASSING = [0, 429, 503];

/** What was drawn of a text: the draws, what they cost, the last answer and what it was asked for. */
const empty = () => ({ draws: [], totals: [], answer: null, asked: null });

export async function startRewrite() {
  const desk = { example: empty(), own: empty(), file: empty() };
  let exampleNumber = 0;
  let running = null;
  let settings = null;
  let curve = null;
  let jobs = null;

  const source = () => document.querySelector("input[name=source]:checked").value;
  const text = () => (source() === "own" ? find("own").value : EXAMPLES[exampleNumber]);
  const here = () => desk[source()];

  // Drawing ----------------------------------------------------------------------------------------------------------

  /** Ask for draws of the text; `isPreview` replaces what the example showed, anything else adds to it. */
  const draw = async (count, isPreview = false) => {
    const from = source();
    const problem = find("go-problem");
    showProblem(problem, null);
    if (text().trim() === "") {
      showProblem(problem, new Error("Type or paste a text first."));
      find("own").focus();
      return;
    }
    if (running && !running.isPreview) return; // a second press does not spend twice
    running?.controller.abort();
    const mine = { controller: new AbortController(), isPreview };
    running = mine;
    busy(true);
    const mechanism = settings.mechanism;
    const asked = { text: text(), ...settings.asked(), draws: count, tokens: mechanism.level === "word" };
    try {
      const answer = await postJson("v1/rewrite", asked, isPreview ? mine.controller.signal : undefined);
      if (isPreview) desk[from] = empty();
      keep(desk[from], answer, asked, mechanism);
      if (source() === from) showAll();
      find("announce").textContent = announcement(desk[from]);
    } catch (error) {
      if (error.status === 0 && from === "own") error.message += " If it had received the text, the draw counts.";
      showProblem(problem, error, PASSING.includes(error.status) ? () => draw(count, isPreview) : null);
      if (isPreview && running === mine) {
        desk[from] = empty(); // what was drawn with other settings is not what these would give
        if (source() === from) {
          showAll();
          find("result").replaceChildren(make("p", { class: "empty" }, NOTHING));
        }
      } else if (source() === from) {
        showNote(true);
      }
    } finally {
      if (running === mine) {
        running = null;
        busy(false);
      }
    }
  };

  const keep = (state, answer, asked, mechanism) => {
    const { guarantee } = answer.guarantee;
    for (const drawn of answer.draws) {
      state.draws.push({
        text: drawn.texts[0],
        pieces: drawn.pieces?.[0] ?? null,
        title: mechanism.title || mechanism.name,
        epsilon: asked.epsilon,
        kind: kind(guarantee),
      });
    }
    state.totals = added(state.totals, guarantee, answer.draws.length);
    state.answer = answer;
    state.asked = asked;
    if (mechanism.level === "word") find("compare-tokens").value = String(Math.max(1, ...answer.units));
  };

  const previewSoon = debounced(() => {
    if (source() === "example") draw(1, true);
  }, PREVIEW_WAIT);

  // Showing ----------------------------------------------------------------------------------------------------------

  const busy = (isBusy) => {
    find("result").setAttribute("aria-busy", String(isBusy));
    find("go").toggleAttribute("data-busy", isBusy);
  };

  const showAll = () => {
    const from = source();
    for (const part of document.querySelectorAll("[data-source]")) part.hidden = part.dataset.source !== from;
    for (const part of document.querySelectorAll("[data-not]")) part.hidden = part.dataset.not === from;
    for (const part of document.querySelectorAll("[data-only]")) part.hidden = part.dataset.only !== from;
    find("example").textContent = EXAMPLES[exampleNumber];
    find("draws-label").hidden = from === "file";
    showResult();
    showCost();
    const state = here();
    promised();
    showDraws(find("draws"), { ...state, isExample: from === "example", again: () => draw(1) });
  };

  const promised = () => {
    const state = here();
    const attacker = state.asked ? curve?.attacker(state.asked) : null;
    const spent = totalLines(state.totals);
    showPromise(find("promise"), { answer: state.answer, draws: state.draws.length, spent, attacker });
  };

  const showResult = () => {
    const { draws, answer } = here();
    find("result-downloads").hidden = !answer;
    if (!answer) {
      const what = source() === "own" ? WAITING : "One moment …";
      find("result").replaceChildren(make("p", { class: "empty" }, what));
      find("result-note").textContent = "";
      return;
    }
    const shown = draws[draws.length - answer.draws.length];
    const name = answer.draws.length > 1 ? "rewritten-draws" : "rewritten";
    find("result").replaceChildren(wordsOf(shown.text, shown.pieces));
    find("result-downloads").replaceChildren(
      "Download: ",
      fileButton(`${name}.txt`, "text/plain", () => textFile(answer)),
      fileButton(`${name}.json`, "application/json", () => jsonFile(answer)),
    );
    showNote();
  };

  /** The line below the result. The example follows the settings, so it is only out of date when a draw `failed`. */
  const showNote = (failed = false) => {
    const state = here();
    if (!state.answer) return;
    const follows = source() === "example" && !failed;
    const now = { ...settings.asked(), text: text() };
    find("result-note").textContent = noteOn(state, !follows && !isSame(now, state.asked));
  };

  /** What the button will do to the budget, before it is pressed. */
  const showCost = () => {
    if (!jobs) return;
    const from = source();
    const before = from === "file" ? Number(jobs.wasSent()) : here().draws.length;
    const count = from === "file" ? 1 : Number(find("draws-count").value);
    const cost = `epsilon ${number(settings.epsilon * count)} ${perUnitOf(settings.mechanism)}`;
    find("go").textContent = from === "file" ? "Rewrite the file" : before ? "Draw again" : "Rewrite";
    find("cost").textContent = costSentence(from, cost, before);
    find("cost").classList.toggle("warning", from !== "example" && before > 0);
  };

  // Listening --------------------------------------------------------------------------------------------------------

  const settingsChanged = (what) => {
    showCost();
    showNote();
    if (what === "epsilon") curve.draw();
    else curve.load();
    previewSoon();
  };

  const useFile = (file) => {
    document.querySelector("input[name=source][value=file]").checked = true;
    showAll();
    jobs?.load();
    jobs?.take(file);
  };

  const sendFile = async () => {
    if (find("go").hasAttribute("data-busy")) return; // a second press does not spend twice
    showProblem(find("go-problem"), null);
    busy(true);
    try {
      await jobs.send();
    } catch (error) {
      showProblem(find("go-problem"), error);
    }
    busy(false);
  };

  const counts = Array.from({ length: MOST_DRAWS }, (_, index) => make("option", {}, String(index + 1)));
  find("draws-count").append(...counts);
  find("draws-count").addEventListener("change", showCost);
  find("source").addEventListener("change", () => {
    showProblem(find("go-problem"), null);
    showAll();
    if (source() === "own") find("own").focus();
    if (source() === "file") jobs?.load();
    if (source() === "example" && settings) previewSoon();
  });
  find("another").addEventListener("click", () => {
    exampleNumber = (exampleNumber + 1) % EXAMPLES.length;
    desk.example = empty();
    showAll();
    previewSoon();
  });
  find("own").addEventListener("input", () => {
    const words = find("own").value.match(/\S+/g)?.length ?? 0;
    find("own-count").textContent = words ? `About ${counted(words, "word")}.` : "No words yet.";
    showNote();
  });
  find("new-text").addEventListener("click", () => {
    find("own").value = "";
    find("own").dispatchEvent(new Event("input"));
    desk.own = empty();
    showAll();
    find("own").focus();
  });
  find("originals").addEventListener("change", (event) => {
    find("view-text").classList.toggle("with-originals", event.target.checked);
  });
  find("go").addEventListener("click", () => {
    if (!settings) return;
    if (source() === "file") sendFile();
    else draw(Number(find("draws-count").value));
  });

  // The first view ---------------------------------------------------------------------------------------------------

  const load = async () => {
    showProblem(find("go-problem"), null);
    busy(true);
    try {
      const catalog = await getJson("v1/mechanisms");
      settings = startSettings(catalog, settingsChanged);
      curve = startCurve(settings, promised);
      jobs = startJobs(settings, showCost);
      startCompare(catalog, settings, () => ({ text: EXAMPLES[exampleNumber] }));
      showAll();
      if (source() === "file") jobs.load();
      if (source() === "example") await draw(1, true);
      curve.load();
    } catch (error) {
      showProblem(find("go-problem"), error, load);
    } finally {
      busy(false);
    }
  };
  showAll();
  await load();
  return { useFile };
}

// Sentences ----------------------------------------------------------------------------------------------------------

const isSame = (now, asked) =>
  ["mechanism", "epsilon", "text"].every((name) => now[name] === asked[name]) &&
  JSON.stringify(now.options) === JSON.stringify(asked.options);

function noteOn({ draws, answer }, isStale) {
  const shown = draws[draws.length - answer.draws.length];
  const parts = [];
  if (shown.pieces) {
    const count = shown.pieces.filter(isChanged).length;
    parts.push(`${count} of ${counted(shown.pieces.length, "word")} changed (${percent(shareChanged(shown.pieces))}).`);
  } else parts.push("The whole text was drawn at once, so no word belongs to another.");
  if (answer.draws.length > 1) parts.push(`The first of ${answer.draws.length} draws; all are below.`);
  const { remaining } = answer.spent;
  if (typeof remaining === "number") parts.push(`Left of your budget: epsilon ${roundedDown(remaining)}.`);
  const drawn = `Drawn with ${shown.title} at epsilon ${number(shown.epsilon)}`;
  if (isStale) parts.push(`${drawn}; the settings or the text have changed since.`);
  return parts.join(" ");
}

function costSentence(from, cost, before) {
  if (from === "file") {
    const again = before ? " This file was sent before: new draws of the same texts add up." : "";
    return `Spends ${cost}, on every text of the file.${again}`;
  }
  if (from === "example") return "The example is public, so it costs nothing and follows the settings by itself.";
  if (!before) return `Spends ${cost}, on this text.`;
  const drawn = `This page has drawn from it ${counted(before, "time")}.`;
  return `A new draw of the same text spends again: ${cost} more. ${drawn}`;
}

function announcement({ draws }) {
  const { epsilon, pieces } = draws[draws.length - 1];
  const share = pieces ? `, ${percent(shareChanged(pieces))} of the words changed` : "";
  return `Rewritten with epsilon ${number(epsilon)}${share}. ${counted(draws.length, "draw")} of this text.`;
}

// Files --------------------------------------------------------------------------------------------------------------

const textFile = (answer) => `${answer.draws.map((draw) => draw.texts[0]).join("\n\n")}\n`;

/** What may be shared: the rewritten texts and the card, without the pairs of words, which hold the original. */
function jsonFile({ mechanism, draws, guarantee, document_guarantee: whole }) {
  const shared = { mechanism, draws: draws.map((draw) => draw.texts[0]), card: guarantee, document_card: whole };
  return `${JSON.stringify(shared, null, 2)}\n`;
}
