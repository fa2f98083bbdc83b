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

// Nothing is shown before its fonts are there: else the page would move under the reader. They are kept by the browser,
// so that this costs a moment once; and after a second at most the page is shown as it is.
(() => {
  const { classList } = document.documentElement;
  const wanted = ['1em "STIX Two Text Variable"', 'italic 1em "STIX Two Text Variable"', "1em STIX2"];
  const loaded = Promise.all(wanted.map((font) => document.fonts.load(font))).catch(() => {});
  classList.add("fonts-coming");
  Promise.race([loaded, new Promise((late) => setTimeout(late, 1000))]).then(() => classList.remove("fonts-coming"));
})();
