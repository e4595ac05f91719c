// Runs before the first paint, so that a chosen theme does not flash. The choice is the only thing kept for good.
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("tacit-theme");
  } catch {
    // A browser that forbids storage follows the system.
  }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
