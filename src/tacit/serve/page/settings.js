// Mechanism, epsilon and options: the part of the desk that all views of a text share.

import { epsilonField } from "./epsilon.js";
import { perUnitOf } from "./budget.js";
import { find, make, sentenceCase } from "./dom.js";

const LEVELS = { document: "Whole text at once", word: "Word by word" };

/** Fills the controls with the mechanisms of the server; `changed` hears "mechanism", "epsilon" or "options". */
export function startSettings(catalog, changed) {
  const select = find("mechanism");
  const byName = new Map(catalog.mechanisms.map((mechanism) => [mechanism.name, mechanism]));
  const epsilon = epsilonField(find("epsilon-slider"), find("epsilon"), () => changed("epsilon"));
  let options = [];

  select.replaceChildren(
    ...Object.entries(LEVELS).map(([level, label]) =>
      make("optgroup", { label }, catalog.mechanisms.filter((one) => one.level === level).map(optionOf)),
    ),
  );

  const use = (name) => {
    const mechanism = byName.get(name);
    select.value = name;
    epsilon.range(mechanism.epsilon.low, mechanism.epsilon.high);
    epsilon.set(mechanism.epsilon.default);
    find("epsilon-unit").textContent = perUnitOf(mechanism);
    find("mechanism-note").replaceChildren(...notesOf(mechanism, catalog.mechanisms));
    options = optionFields(mechanism, () => changed("options"));
    find("options").replaceChildren(...options.map((option) => option.element));
    find("options-box").hidden = options.length === 0;
  };
  select.addEventListener("change", () => {
    use(select.value);
    changed("mechanism");
  });

  const usable = (name) => byName.get(name)?.available;
  // First what reads like language: a whole text at once. Word by word stands behind it.
  const names = [catalog.default.document, catalog.default.word, ...byName.keys()];
  const first = names.find(usable);
  if (!first) throw new Error("This server has no mechanism that can be used: its list says what to install.");
  use(first);

  return {
    get mechanism() {
      return byName.get(select.value);
    },
    get epsilon() {
      return epsilon.value;
    },
    get options() {
      const given = options.filter((option) => option.isChanged());
      return Object.fromEntries(given.map((option) => [option.name, option.value()]));
    },
    /** What the API takes. */
    asked() {
      return { mechanism: select.value, epsilon: epsilon.value, options: this.options };
    },
    choose(name, value) {
      use(name);
      epsilon.set(value);
      changed("mechanism");
    },
    setEpsilon(value) {
      epsilon.set(value);
      changed("epsilon");
    },
  };
}

const optionOf = ({ name, title, available }) =>
  make("option", { value: name, disabled: !available }, `${title || name}${available ? "" : " (not available)"}`);

function notesOf(mechanism, all) {
  const missing = all.filter((one) => !one.available);
  const notes = [`${mechanism.summary} ${sentenceCase(mechanism.notion)} differential privacy, ${mechanism.paper}.`];
  if (missing.length) {
    const reasons = missing.map((one) => make("li", {}, make("b", {}, one.title || one.name), `: ${one.why_not}`));
    const summary = make("summary", {}, `${missing.length} not available here`);
    notes.push(make("details", {}, summary, make("ul", {}, reasons)));
  }
  return notes;
}

function optionFields(mechanism, changed) {
  return mechanism.options.map(({ name, default: standard, help }) => {
    const shown = shownAs(standard);
    const id = `option-${name}`;
    const note = `${id}-note`;
    const described = help ? note : null;
    // A field of one line would drop the line breaks of a prompt.
    const lines = shown.split("\n").length;
    const shared = { id, autocomplete: "off", "aria-describedby": described };
    const field = lines > 1 ? make("textarea", { rows: lines, ...shared }) : make("input", { type: "text", ...shared });
    field.value = shown;
    field.addEventListener("input", changed);
    const label = make("label", { for: id }, name.replaceAll("_", " "));
    const about = help ? make("p", { class: "note", id: note }, help) : null;
    return {
      name,
      element: make("div", { class: "option" }, label, field, about),
      isChanged: () => field.value.trim() !== shown.trim(),
      value: () => (lines > 1 ? field.value : parsed(field.value.trim())),
    };
  });
}

/** A default as its field shows it: white space alone, which nobody would see, as JSON. */
export function shownAs(standard) {
  if (standard === null) return "";
  const text = String(standard);
  return typeof standard === "string" && text !== "" && text.trim() === "" ? JSON.stringify(text) : text;
}

/** Numbers, true, false, null and JSON as such; anything else is a string. */
export function parsed(text) {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
