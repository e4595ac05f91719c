// The privacy card, from its JSON form: the parts that the page shows, and the same parts as Markdown and HTML files.
// Thresholds and odds follow `tacit/card/strength.py`, as a test checks; the lines about numbers and settings come from there.

import { number, roundedUp, sentenceCase } from "./dom.js";

/** e^exponent, rounded up, in words that stay readable when the number does not. */
export function odds(exponent) {
  if (exponent === null || !Number.isFinite(exponent)) return "any factor";
  if (exponent === 0) return "1";
  // A little more than the error of Math.exp and of a division, so that no bound is shown below itself.
  const above = 1 + 4 * Number.EPSILON;
  const factor = Math.exp(exponent) * above;
  if (exponent < 0.01) return String(roundedUp(factor, 5));
  if (factor < 100) return String(roundedUp(factor, 3));
  if (exponent < 20) return Math.ceil(factor).toLocaleString("en");
  return `10^${Math.ceil((exponent / Math.LN10) * above)}`;
}

/** A verdict with stated thresholds: ln 3 is what a fair-coin randomized response gives. */
export function strength(exponent) {
  if (exponent === null || !Number.isFinite(exponent)) return "nominal: the formal bound alone no longer protects";
  if (exponent <= Math.log(3) + 1e-9) return "strong";
  if (exponent <= 4) return "moderate";
  if (exponent <= 10) return "weak";
  return "nominal: the formal bound alone no longer protects";
}

const sentence = (text) => sentenceCase(text) + (/[.!?]$/.test(text) ? "" : ".");

/** What the card says, in the order in which a reader asks; `answer` is one of /v1/rewrite. */
export function content(answer) {
  const card = answer.guarantee;
  const whole = answer.document_guarantee;
  const unit = card.guarantee.unit;
  const tokens = Math.max(0, ...(answer.units ?? []));
  const ofUnit = card.totals.filter((total) => total.what.startsWith(unit === "token" ? "one word" : `one ${unit}`));
  const ofText = unit === "token" && whole ? whole.totals : [];
  const named = ofText.map((total) => ({
    ...total,
    what: total.what.replace(/^one document/, `this text of ${tokens} words`),
  }));
  const still = [];
  if (unit === "token" && whole) still.push(`About the whole text, as words add up: ${whole.sentence}`);
  if (answer.document_note) still.push(sentence(answer.document_note));
  still.push(...card.guarantee.not_covered.map(sentence));
  still.push("What other draws of the same text tell: each new draw adds to this one.");
  return {
    isPrivate: card.guarantee.notion !== "none",
    plain: card.sentence,
    // With a delta, e^epsilon bounds the probabilities of events, not the odds.
    heading: card.guarantee.delta ? "any event at most so many times as probable" : "odds change by at most",
    totals: [...ofUnit, ...named].map(({ what, exponent, note }) => ({
      what,
      bound: boundText(exponent) + (note ? ` (${note})` : ""),
      strength: strength(exponent),
    })),
    still,
    assumptions: card.guarantee.assumptions.map(sentence),
    learned: card.guarantee.provenance.map((one) => {
      const origin = one.public ? "public" : `private, paid by ${one.paid_by}`;
      return `${one.name}: ${one.source} (${origin})`;
    }),
    numbers: card.in_words,
    version: card.tacit_version,
  };
}

const boundText = (exponent) => (exponent === null ? "any factor" : `e^${number(exponent)} = ${odds(exponent)}`);

export const STILL = "What an attacker can still learn";

const title = (parts) => (parts.isPrivate ? "Privacy card" : "Privacy card: NO GUARANTEE");

/** `spent` are the lines about all draws of the text on this page; the card itself knows of one answer only. */
export function markdown(parts, spent) {
  const cell = (value) => value.replaceAll("|", "\\|").replaceAll("\n", " ");
  const list = (heading, items) => (items.length ? [`## ${heading}`, "", ...items.map((item) => `- ${item}`), ""] : []);
  return [
    `# ${title(parts)}`, "", `> ${parts.plain}`, "",
    "## What it adds up to", "", `| for | ${parts.heading} | protection |`, "|---|---|---|",
    ...parts.totals.map((row) => `| ${cell(row.what)} | ${cell(row.bound)} | ${cell(row.strength)} |`), "",
    ...list(STILL, parts.still),
    ...list("Assumed", parts.assumptions),
    ...list("Learned from", parts.learned),
    ...list("Drawn on the page", spent),
    "## Numbers", "", "| | |", "|---|---|",
    ...parts.numbers.map(([name, value]) => `| ${cell(name)} | ${cell(value)} |`), "",
    `*Tacit ${parts.version}.*`, "",
  ].join("\n");
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ENTITIES[sign]);

const tableRow = (cells) => `<tr>${cells.map((cell) => `<td>${escaped(cell)}</td>`).join("")}</tr>`;

export function html(parts, spent) {
  const list = (heading, items) => {
    const listed = items.map((item) => `<li>${escaped(item)}</li>`).join("");
    return items.length ? `<h2>${escaped(heading)}</h2><ul>${listed}</ul>` : "";
  };
  const totals = parts.totals.map((row) => tableRow([row.what, row.bound, row.strength])).join("");
  const rows = parts.numbers.map(tableRow).join("");
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title(parts)}</title><style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif}
main{max-width:46rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #8884}
h2{font-size:1.1rem;margin-top:1.8rem}.plain{font:1.2rem/1.5 Georgia,serif}</style></head><body><main>
<h1>${title(parts)}</h1><p class="plain">${escaped(parts.plain)}</p>
<h2>What it adds up to</h2>
<table><tr><th>for</th><th>${escaped(parts.heading)}</th><th>protection</th></tr>${totals}</table>
${list(STILL, parts.still)}${list("Assumed", parts.assumptions)}${list("Learned from", parts.learned)}
${list("Drawn on the page", spent)}<h2>Numbers</h2><table>${rows}</table>
<p>Tacit ${escaped(parts.version)}.</p></main></body></html>
`;
}
