// Runs before the first paint, so that a chosen theme never flashes in the other one.
(function () {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try { return localStorage.getItem("potok.theme"); } catch { return null; }
  };
  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  const shown = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  const label = () => {
    const button = document.getElementById("theme");
    button.setAttribute("aria-label", shown() === "dark" ? "Switch to the light theme" : "Switch to the dark theme");
    button.dataset.shown = shown();
  };

  document.addEventListener("DOMContentLoaded", () => {
    label();
    dark.addEventListener("change", label);
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = shown() === "dark" ? "light" : "dark";
      try { localStorage.setItem("potok.theme", root.dataset.theme); } catch { /* private windows keep nothing */ }
      label();
    });
  });
})();
