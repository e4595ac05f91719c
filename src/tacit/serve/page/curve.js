// The curve of expected change over epsilon, drawn as SVG. Pointing at it chooses an epsilon; the slider does the same
// by keyboard, and the numbers stand in a table for those who do not see the curve.

import { postJson } from "./api.js";
import { stops } from "./epsilon.js";
import { find, make, makeSvg, number, percent, sentenceCase, showProblem } from "./dom.js";

const NARROWEST = 260;
const WIDEST = 680;
const HEIGHT = 230;
const LEFT = 52;
const RIGHT = 16;
const TOP = 34;
const BOTTOM = 40;
const FINE = 16;

const down = (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);

/** The share at an epsilon between two points, straight on the logarithmic axis; null outside, or where there is none. */
export function between(points, epsilon, share = "changed") {
  for (let index = 1; index < points.length; index += 1) {
    const [a, b] = [points[index - 1], points[index]];
    if (epsilon < a.epsilon || epsilon > b.epsilon) continue;
    if (typeof a[share] !== "number" || typeof b[share] !== "number") return null;
    const part = Math.log(epsilon / a.epsilon) / Math.log(b.epsilon / a.epsilon);
    return a[share] + part * (b[share] - a[share]);
  }
  return null;
}

/** What the best attacker makes of a release, in words that need no exponent. */
export function attackerSentence(guessed, blind) {
  const of100 = (share) => (share < 0.005 ? "fewer than 1" : `about ${Math.round(share * 100)}`);
  const without = `without seeing it, ${of100(blind)}`;
  return `An attacker who knows the mechanism and sees the result guesses ${of100(guessed)} of 100 words; ${without}.`;
}

/** First a few points over the whole range, then those between, so that a rough curve is there soon. */
export function rounds(low, high) {
  const all = stops(low, high);
  const steps = Array.from({ length: FINE + 1 }, (_, index) => all[Math.round((index * (all.length - 1)) / FINE)]);
  const chosen = (isIn) => steps.filter((_, index) => isIn(index));
  return [chosen((index) => index % 4 === 0), chosen((index) => index % 4 === 2), chosen((index) => index % 2 === 1)];
}

const nameOf = ({ mechanism, options }) => JSON.stringify([mechanism, options]);

/**
 * A curve that asks the server again when the mechanism or its options change, and moves its mark with epsilon;
 * `learned` is called when there are new points.
 */
export function startCurve(settings, learned = () => {}) {
  const place = find("curve");
  const known = new Map();
  let shown = { points: [], how: "", rounds: [] };
  let running = new AbortController();

  /** What an attacker guesses of a release with these settings; null while it is not known. */
  const attacker = (asked) => {
    const curve = known.get(nameOf(asked));
    const guessed = curve ? between(curve.points, asked.epsilon, "guessed") : null;
    return guessed === null ? null : { sentence: attackerSentence(guessed, curve.blind), how: curve.guessedHow };
  };

  const draw = () => {
    if (!shown.points.length) return;
    const seen = between(shown.points, settings.epsilon);
    const isOpen = place.querySelector("details")?.open;
    place.replaceChildren(
      svgOf(shown.points, settings.epsilon, seen, width(), (epsilon) => settings.setEpsilon(epsilon)),
      make("p", { class: "reading small" }, markedSentence(settings.epsilon, seen)),
      make("p", { class: "reading small attacker" }, attacker(settings.asked())?.sentence ?? ""),
      make("p", { class: "note" }, `${sentenceCase(shown.how)}.${shown.rounds.length ? ROUGH : ""} ${FREE}`),
      tableOf(shown.points, isOpen),
    );
  };
  const load = async () => {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const { mechanism, options } = settings.asked();
    const name = nameOf({ mechanism, options });
    const { low, high } = settings.mechanism.epsilon;
    shown = known.get(name) ?? { points: [], how: "", rounds: rounds(low, high) };
    const curve = shown;
    if (!curve.points.length) place.replaceChildren(make("p", { class: "empty" }, "Computing the curve …"));
    draw();
    try {
      while (curve.rounds.length) {
        const answer = await postJson("v1/curve", { mechanism, options, epsilons: curve.rounds[0] }, signal);
        curve.points = [...curve.points, ...answer.points].sort((a, b) => a.epsilon - b.epsilon);
        curve.how = answer.how;
        curve.blind = answer.blind;
        curve.guessedHow = answer.guessed_how;
        curve.rounds = curve.rounds.slice(1);
        known.set(name, curve);
        draw();
        learned();
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      // A mechanism without such a curve is no failure: the sentence says why.
      if (error.status === 422) place.replaceChildren(make("p", { class: "empty" }, error.message));
      else showProblem(place, error, load);
    }
  };
  // Drawn at the width it is shown in, so that its letters keep their size on a phone.
  const width = () => Math.min(Math.max(place.clientWidth, NARROWEST), WIDEST);
  let drawn = 0;
  new ResizeObserver(() => {
    if (width() === drawn) return;
    drawn = width();
    draw();
  }).observe(place);
  return { load, draw, attacker };
}

const FREE = "It looks at no private text and costs nothing.";
const ROUGH = " Rough so far: points between are being computed.";

function markedSentence(epsilon, seen) {
  if (seen === null) return `Epsilon ${number(epsilon)} lies outside this curve.`;
  return `At epsilon ${number(epsilon)}, expect about ${percent(seen)} of the words to change.`;
}

function ticks(low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power += 1) {
    found.push(Number((10 ** power).toPrecision(1)));
  }
  return found.length > 1 ? found : [low, high];
}

function svgOf(points, epsilon, seen, width, choose) {
  const low = points[0].epsilon;
  const high = points[points.length - 1].epsilon;
  const across = (value) => LEFT + (Math.log(value / low) / Math.log(high / low)) * (width - LEFT - RIGHT);
  const line = points.map((point) => `${across(point.epsilon).toFixed(1)},${down(point.changed).toFixed(1)}`).join(" ");
  const right = width - RIGHT;
  const level = (share) => [
    makeSvg("line", { x1: LEFT, x2: right, y1: down(share), y2: down(share), class: "grid" }),
    makeSvg("text", { x: LEFT - 8, y: down(share) + 4, class: "tick end" }, percent(share)),
  ];
  const step = (value) =>
    makeSvg("text", { x: across(value), y: HEIGHT - BOTTOM + 18, class: "tick middle" }, number(value));
  const svg = makeSvg(
    "svg",
    {
      viewBox: `0 0 ${width} ${HEIGHT}`,
      width,
      height: HEIGHT,
      role: "img",
      class: "curve",
      "aria-labelledby": "curve-name curve-about",
    },
    makeSvg("title", { id: "curve-name" }, "Expected share of changed words over epsilon"),
    makeSvg("desc", { id: "curve-about" }, described(points, epsilon, seen)),
    [0, 0.5, 1].flatMap(level),
    ticks(low, high).map(step),
    makeSvg("text", { x: right, y: HEIGHT - 4, class: "tick end" }, "epsilon"),
    makeSvg("polygon", { points: `${LEFT},${down(0)} ${line} ${right},${down(0)}`, class: "under" }),
    makeSvg("polyline", { points: line, class: "line" }),
  );
  if (seen !== null) {
    const x = across(epsilon);
    const labelX = Math.min(Math.max(x, LEFT + 10), right - 16);
    svg.append(
      makeSvg("line", { x1: x, x2: x, y1: TOP - 8, y2: down(0), class: "mark" }),
      makeSvg("circle", { cx: x, cy: down(seen), r: 6, class: "dot" }),
      makeSvg("text", { x: labelX, y: TOP - 14, class: "value middle" }, percent(seen)),
    );
  }
  svg.addEventListener("click", (event) => {
    const part = (event.clientX - svg.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT);
    choose(Number((low * (high / low) ** Math.min(Math.max(part, 0), 1)).toPrecision(2)));
  });
  return svg;
}

function described(points, epsilon, seen) {
  const [first, last] = [points[0], points[points.length - 1]];
  const at = ({ epsilon: where, changed }) => `${percent(changed)} at epsilon ${number(where)}`;
  const ends = `From ${at(first)} to ${at(last)}.`;
  return seen === null ? ends : `${ends} ${markedSentence(epsilon, seen)}`;
}

function tableOf(points, isOpen) {
  const rows = points.map(({ epsilon, changed }) =>
    make("tr", {}, make("td", {}, number(epsilon)), make("td", {}, percent(changed))),
  );
  const head = ["Epsilon", "Words that change"].map((text) => make("th", { scope: "col" }, text));
  const table = make("table", { class: "narrow" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
  return make("details", { open: isOpen }, make("summary", {}, "The numbers"), table);
}
