// Building elements without markup strings: text is always text, so nothing a server or a user says becomes markup.

export const find = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

/** An element with properties, listeners ("on…"), attributes and children; strings become text. */
export function make(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

export function makeSvg(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Show a sentence in an alert region, with an action beside it where one helps; without an error, clear it. */
export function showProblem(place, error, again = null) {
  place.replaceChildren();
  if (!error || error.name === "AbortError") return;
  const retry = again && make("button", { type: "button", class: "link", onclick: again }, "Try again");
  place.append(make("p", { class: "problem" }, error.message, retry ? " " : null, retry));
}

/** Call `action` once after `wait` milliseconds without another call. */
export function debounced(action, wait) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, wait);
  };
}

/** Hand a file to the user; it never leaves the browser on the way. */
export function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const address = URL.createObjectURL(blob);
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A button that looks like a link and saves a file; the content is made when it is pressed. */
export function fileButton(name, type, content) {
  return make("button", { type: "button", class: "link", onclick: () => download(name, content(), type) }, name);
}

export const sentenceCase = (text) => text[0].toUpperCase() + text.slice(1);

export const percent = (share) => `${share > 0 && share < 0.01 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;

/** Four significant digits, without trailing zeros and without exponents in the usual range. Rounded up, because what
 * the page shows are bounds: epsilon, delta, what was spent. (`roundedDown` is for what is left.) */
export function number(value) {
  if (!Number.isFinite(value)) return String(value);
  const small = value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e7);
  return small ? roundedUp(value, 3).toExponential() : String(roundedUp(value, 4));
}

/** The smallest number of so many significant digits that is not below the value. */
export function roundedUp(value, digits) {
  return rounded(value, digits, (candidate) => candidate >= value, 1n);
}

/** The largest number of so many significant digits that is not above the value. */
export function roundedDown(value, digits = 4) {
  return rounded(value, digits, (candidate) => candidate <= value, -1n);
}

function rounded(value, digits, isOnTheSafeSide, step) {
  const nearest = value.toExponential(digits - 1);
  if (isOnTheSafeSide(Number(nearest))) return Number(nearest);
  const [mantissa, power] = nearest.split("e");
  const moved = BigInt(mantissa.replace(".", "")) + step;
  return Number(`${moved}e${Number(power) - digits + 1}`);
}

export const counted = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
