// The reader's choice of colours, before anything is painted. Without a choice the system decides.
"use strict";

(() => {
  let chosen = "";
  try {
    chosen = localStorage.getItem("lemmata-theme") ?? "";
  } catch {
    // no storage, no memory of the choice
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
