// Views by the address after "#", the theme, and the start.

import { find } from "./dom.js";
import { forgetKey, hasKey } from "./api.js";
import { showLedger } from "./ledger.js";
import { showReports } from "./reports.js";
import { startRewrite } from "./rewrite.js";
import { startShare } from "./share.js";
import { startTips } from "./words.js";

let share = null;
let rewriting = null;
/** What stands behind a view begins when it is first looked at. */
const VIEWS = {
  share: ["Share a corpus", () => (share ??= startSharing())],
  text: ["Rewrite a text", () => (rewriting ??= startRewrite())],
  reports: ["Reports", showReports],
  ledger: ["Ledger", showLedger],
};

function startSharing() {
  const started = startShare();
  started.load();
  return started;
}

function viewOfAddress() {
  const name = location.hash.replace(/^#\/?/, "");
  return Object.hasOwn(VIEWS, name) ? name : "share";
}

function showView(moveFocus) {
  const current = viewOfAddress();
  for (const name of Object.keys(VIEWS)) find(`view-${name}`).hidden = name !== current;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const [title, show] = VIEWS[current];
  document.title = `${title} · Tacit`;
  if (moveFocus) {
    scrollTo(0, 0);
    find(`view-${current}`).querySelector("h1").focus({ preventScroll: true });
  }
  show();
}

function startTheme() {
  const button = find("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  // What a click does, not what is: a label that says both ("Dark", pressed) is read either way.
  const show = () => {
    button.lastElementChild.textContent = isDark() ? "Switch to light" : "Switch to dark";
    button.title = `${button.lastElementChild.textContent} colors`;
  };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("tacit-theme", theme);
    } catch {
      // The choice then lasts until the page is closed.
    }
    show();
  });
  system.addEventListener("change", show);
  show();
}

/** A file that is dropped anywhere goes to the view that is open. */
function listenForDrops() {
  const holdsFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const mark = (isOver) => find("main").classList.toggle("dropping", isOver);
  let depth = 0;
  document.addEventListener("dragenter", (event) => holdsFile(event) && mark(++depth > 0));
  document.addEventListener("dragleave", (event) => holdsFile(event) && mark(--depth > 0));
  document.addEventListener("dragover", (event) => holdsFile(event) && event.preventDefault());
  document.addEventListener("drop", async (event) => {
    if (!holdsFile(event)) return;
    event.preventDefault();
    depth = 0;
    mark(false);
    const [file] = event.dataTransfer.files;
    if (file && !find("view-share").hidden) share.take(file);
    if (file && !find("view-text").hidden) (await rewriting).useFile(file);
  });
}

find("skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("main").focus();
});
find("forget-key").hidden = !hasKey();
find("forget-key").addEventListener("click", () => {
  forgetKey();
  location.reload();
});
startTheme();
startTips();
listenForDrops();
addEventListener("hashchange", () => showView(true));
showView(false);
