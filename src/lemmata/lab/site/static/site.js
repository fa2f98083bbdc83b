// What every page shares: colours, keys, copying, and formulas that were not set in advance. Pages read without it.
"use strict";

(() => {
  const here = document.currentScript;
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];

  // --- Colours: as the system, light, dark ---

  const themes = ["", "light", "dark"];
  const names = { "": "as the system", light: "light", dark: "dark" };

  function showTheme() {
    const theme = document.documentElement.dataset.theme ?? "";
    one("[data-theme-name]").textContent = `Colours: ${names[theme]}`;
    one("[data-theme-button]").title = `Colours: ${names[theme]}`;
  }

  function nextTheme() {
    const now = document.documentElement.dataset.theme ?? "";
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    try {
      localStorage.setItem("lemmata-theme", next);
    } catch {
      // shown, but not remembered
    }
    showTheme();
    document.dispatchEvent(new Event("lemmata:theme")); // for what is drawn on a canvas
  }

  // --- Copying: commands, and formulas as the LaTeX they came from ---

  function latexOf(part) {
    const copy = part.cloneNode(true);
    copy.querySelectorAll("math").forEach((math) => {
      const latex = math.querySelector("annotation[encoding='application/x-tex']")?.textContent;
      if (latex) math.replaceWith(math.getAttribute("display") === "block" ? ` $$${latex}$$ ` : `$${latex}$`);
    });
    copy.querySelectorAll("[data-tex]").forEach((span) => span.replaceWith(`$${span.dataset.tex}$`));
    copy.querySelectorAll("button, script").forEach((element) => element.remove());
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  async function copy(button, text) {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed here";
    }
    setTimeout(() => (button.textContent = said), 1600);
  }

  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return;
    const part = document.createElement("div");
    part.append(selection.getRangeAt(0).cloneContents());
    if (!part.querySelector("math, [data-tex]")) return;
    event.clipboardData.setData("text/plain", latexOf(part));
    event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-latex]");
    if (!button) return;
    if (button.dataset.copyLatex) copy(button, latexOf(document.getElementById(button.dataset.copyLatex)));
    else copy(button, button.parentElement.querySelector("[data-command]").textContent);
  });

  // --- Keys ---

  const places = { a: "/atlas", e: "/errata", s: "/systems", l: "/labs", h: "/" };
  let going = 0;

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=range], [type=radio], [type=checkbox]), select, textarea, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const going_now = Date.now() - going < 1200;
    going = 0;
    if (going_now && places[event.key]) location.href = places[event.key];
    else if (event.key === "g") going = Date.now();
    else if (event.key === "/") one("[data-find]")?.focus(), one("[data-find]")?.select();
    else if (event.key === "?") one("#keys").showModal();
    else if (event.key === "t") nextTheme();
    else if (event.key === "[") one("a[rel=prev]")?.click();
    else if (event.key === "]") one("a[rel=next]")?.click();
    else return;
    event.preventDefault();
  });

  // --- Filters: what is not filtered need not stand in the address ---

  document.addEventListener("htmx:configRequest", (event) => {
    const { formData } = event.detail;
    [...formData.entries()].filter(([, value]) => value === "").forEach(([name]) => formData.delete(name));
  });

  // --- Formulas that the table lacks ---

  function improve() {
    const rough = all("[data-tex]:not([data-set])");
    if (!rough.length || !here.dataset.temml) return;
    const set = () =>
      all("[data-tex]:not([data-set])").forEach((span) => {
        span.dataset.set = "";
        const { tex, dialled } = span.dataset;
        const options = { displayMode: "block" in span.dataset, annotate: true, throwOnError: true };
        const made = document.createElement("span");
        try {
          window.temml.render(dialled ?? tex, made, { ...options, trust: ({ command }) => command === "\\class" });
          if (dialled) setDials(made);
          span.replaceChildren(...made.childNodes);
        } catch {
          // the Unicode line stays
        }
      });
    const done = () => (set(), document.dispatchEvent(new Event("lemmata:set")));
    if (window.temml) return done();
    const script = document.createElement("script");
    script.src = here.dataset.temml;
    script.onload = done;
    document.head.append(script);
  }

  // As typeset.py does: a dial is a row with its name and style as data.
  function setDials(made) {
    made.querySelectorAll(".dial").forEach((element) => {
      const [, name, style] = element.getAttribute("class").split(" ");
      const row = document.createElementNS("http://www.w3.org/1998/Math/MathML", "mrow");
      row.setAttribute("class", "dial");
      row.dataset.dial = name;
      row.dataset.as = style;
      element.removeAttribute("class");
      element.replaceWith(row);
      row.append(element);
    });
  }

  // Chromium reserves the width of the largest radical sign behind every root: measure what is left over, and close it.
  function closeRoots() {
    const roots = all("msqrt:not([data-closed]), mroot:not([data-closed])");
    const gaps = roots.map((root) => {
      const [base, whole] = [root.firstElementChild, root].map((element) => element?.getBoundingClientRect());
      return base ? (whole.right - base.right) / parseFloat(getComputedStyle(root).fontSize) : 0;
    });
    roots.forEach((root, k) => {
      root.dataset.closed = "";
      if (gaps[k] > 0.05) root.style.marginRight = `${-gaps[k]}em`;
    });
  }

  // A formula that is wider than its place is scrolled, by keys too; one that fits is no stop on the way.
  const sizes = new ResizeObserver((entries) =>
    entries.forEach(({ target }) => {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }),
  );

  function finish() {
    closeRoots();
    all(".display, .beside dd").forEach((box) => sizes.observe(box));
  }

  all("[data-theme-button], [data-keys-button], [data-copy], [data-copy-latex]").forEach((button) => (button.hidden = false));
  one("[data-theme-button]").addEventListener("click", nextTheme);
  one("[data-keys-button]").addEventListener("click", () => one("#keys").showModal());
  document.addEventListener("htmx:afterSettle", () => (improve(), finish()));
  showTheme();
  improve();
  document.fonts.ready.then(finish);
})();
