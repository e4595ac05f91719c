// All mechanisms at one guarantee for the whole text. The server converts where a proof exists and says why elsewhere.
// Finding the settings looks at no text; the samples rewrite the public example.

import { perUnitOf } from "./budget.js";
import { postJson } from "./api.js";
import { counted, find, make, number, percent, roundedDown, showProblem } from "./dom.js";
import { wordsOf } from "./words.js";

export function startCompare(catalog, settings, example) {
  const place = find("compare");
  let running = new AbortController();

  const compare = async () => {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const wanted = {
      document_epsilon: Number(find("compare-epsilon").value),
      tokens: Number(find("compare-tokens").value),
    };
    showProblem(find("compare-problem"), null);
    if (!(wanted.document_epsilon > 0) || !(Number.isInteger(wanted.tokens) && wanted.tokens >= 1)) {
      showProblem(find("compare-problem"), new Error("Give an epsilon above 0, and how many words the text has."));
      return;
    }
    const rows = make("tbody");
    const without = make("ul");
    const progress = make("p", { class: "empty" });
    place.setAttribute("aria-busy", "true");
    place.replaceChildren(table(rows), progress);
    try {
      // The word level answers fast; document mechanisms may have to load a model first.
      const withDocuments = find("compare-documents").checked;
      const ordered = catalog.mechanisms
        .filter((mechanism) => mechanism.level === "word" || withDocuments)
        .sort((a, b) => b.level.localeCompare(a.level));
      for (const [index, mechanism] of ordered.entries()) {
        progress.textContent = `Asking for ${titleOf(mechanism)}, ${index + 1} of ${ordered.length} …`;
        const why = mechanism.available ? await addRow(rows, mechanism, wanted, signal) : mechanism.why_not;
        if (why) without.append(make("li", {}, make("b", {}, titleOf(mechanism)), `: ${why}`));
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      showProblem(find("compare-problem"), error, compare);
    }
    place.removeAttribute("aria-busy");
    const found = rows.childElementCount;
    const others = without.childElementCount;
    const why = make("summary", {}, `${counted(others, "mechanism")} without this promise, and why`);
    place.replaceChildren(
      found ? table(rows) : make("p", { class: "empty" }, "No mechanism gives this promise for the whole text."),
      others ? make("details", {}, why, without) : "",
    );
    find("compare-announce").textContent = `${counted(found, "mechanism")} compared.`;
  };

  /** One more row; or why there is none. */
  const addRow = async (rows, mechanism, wanted, signal) => {
    let calibrated;
    try {
      calibrated = await postJson("v1/calibrate", { mechanism: mechanism.name, ...wanted }, signal);
    } catch (error) {
      if (error.name === "AbortError" || ![404, 422].includes(error.status)) throw error;
      return error.message;
    }
    const { guarantee } = calibrated;
    const epsilon = roundedDown(calibrated.epsilon);
    const change = make("td", { "data-label": "Words that change" }, "…");
    const sample = make("td", { class: "reading small", "data-label": "The example becomes" }, "…");
    const title = titleOf(mechanism);
    const chosen = () => use(mechanism.name, epsilon);
    const label = `Use ${title} with epsilon ${number(epsilon)}`;
    const per = `${perUnitOf(mechanism)}${withDelta(guarantee)}`;
    rows.append(
      make(
        "tr",
        {},
        make("th", { scope: "row" }, title, make("small", {}, `for ${guarantee.guarantee.adjacency}`)),
        make("td", { "data-label": "Epsilon" }, make("b", {}, number(epsilon)), make("small", {}, ` ${per}`)),
        change,
        sample,
        make("td", {}, make("button", { type: "button", onclick: chosen, "aria-label": label }, "Use")),
      ),
    );
    change.textContent = await expected(mechanism, epsilon, signal);
    const draw = () => drawSample(sample, mechanism, epsilon, signal);
    if (mechanism.level === "word" && find("compare-sample").checked) await draw();
    else {
      const asked = { type: "button", onclick: draw, "aria-label": `Rewrite the example with ${title}` };
      sample.replaceChildren(make("button", asked, "Rewrite it"));
    }
    return null;
  };

  const drawSample = async (place, mechanism, epsilon, signal) => {
    place.textContent = "…";
    try {
      const asked = { ...example(), mechanism: mechanism.name, epsilon, tokens: mechanism.level === "word" };
      const { draws } = await postJson("v1/rewrite", asked, signal);
      place.replaceChildren(wordsOf(draws[0].texts[0], draws[0].pieces?.[0] ?? null));
    } catch (error) {
      if (error.name === "AbortError") throw error;
      place.textContent = error.message;
    }
  };

  const expected = async (mechanism, epsilon, signal) => {
    if (mechanism.level !== "word") return "the whole text";
    try {
      const { points } = await postJson("v1/curve", { mechanism: mechanism.name, epsilons: [epsilon] }, signal);
      return percent(points[0].changed);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      return "not known";
    }
  };

  const use = (name, epsilon) => {
    settings.choose(name, epsilon);
    find("mechanism").focus();
  };

  find("compare-form").addEventListener("submit", (event) => {
    event.preventDefault();
    compare();
  });
}

const titleOf = (mechanism) => mechanism.title || mechanism.name;

const withDelta = ({ guarantee }) => (guarantee.delta ? `, delta ${number(guarantee.delta)}` : "");

function table(rows) {
  const head = ["Mechanism", "Epsilon", "Words that change", "The example becomes", ""];
  const cells = head.map((text) => (text ? make("th", { scope: "col" }, text) : make("td")));
  return make("table", { class: "comparison stacking" }, make("thead", {}, make("tr", {}, cells)), rows);
}
