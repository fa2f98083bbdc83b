// The stage on which a formula is broken: see templates/probe.html. Sliders, dials inside the formula, verdict, figure.
"use strict";

(() => {
  const { live, post } = window.lemmata;

  const PATIENCE = 500; // milliseconds after which a running check says so, and can be stopped
  const SLOW = 1; // seconds from which a check runs when a slider is let go, and not on its way
  const NO_FIGURE = '<p class="note">There is no figure of this version.</p>';
  const NEUTRAL = ["nothing", "divisor", "subtrahend"]; // styles of dials: see formulas.py
  const STROKE = 180; // pixels that a dial in a formula is dragged from truth to lie

  function stage(root) {
    const part = (name) => root.querySelector(`[data-probe-${name}]`);
    const forms = [...root.querySelectorAll("form[data-probe]")];
    const answers = new Map(); // what the check said so far, by lie and position
    let form = forms.find((each) => !each.hidden);
    let seconds = Number(root.dataset.seconds); // that a run of the check takes
    let running = null; // the question that waits for its answer

    const facts = new Map(forms.map((each) => [each, read(each)]));
    const at = () => Number(form.querySelector("input[type=range], input[type=radio]:checked").value);
    const key = () => `${form.dataset.lie}:${at()}`;
    const version = () => (at() ? key() : "the statement"); // at the truth every lie is the statement itself
    const begun = part("verdict").textContent.trim() ? version() : "";
    const belongs = { verdict: begun, figure: begun }; // which version the verdict and the figure on the page are of
    if (begun) answers.set(begun, kept());

    // --- What is seen at once: the value beside the slider, and in the formula ---

    function look() {
      const { texts } = facts.get(form);
      const text = texts[at()];
      const range = form.querySelector("input[type=range]");
      if (range) {
        form.querySelector("[data-probe-output]").value = text;
        range.setAttribute("aria-valuetext", text);
      }
      root.dataset.colour = form.dataset.colour;
      dials(root).forEach((dial) => write(dial));
      compare();
    }

    // What the page shows of another version than the one in the formula is dimmed, and not read out.
    function compare() {
      const [now, name] = [version(), at() ? "This version" : "The statement, as it stands"];
      const known = belongs.verdict === now;
      const said = known ? name : `${name}: ${running ? "being checked" : "not checked yet"}`;
      if (part("whose").textContent !== said) part("whose").textContent = said;
      part("said").toggleAttribute("data-stale", !known);
      part("said").setAttribute("aria-hidden", String(!known));
      part("figure").toggleAttribute("data-stale", belongs.figure !== now);
      part("figure").inert = belongs.figure !== now;
      // A slow check waits until it is asked.
      forms.forEach((each) => (each.querySelector("[data-probe-run]").hidden = !live || known || Boolean(running) || seconds < SLOW));
    }

    function write(dial) {
      const mine = formOf(dial);
      if (!mine) return;
      dial.original ??= dial.innerHTML;
      const position = mine === form ? at() : 0;
      const shown = position ? facts.get(mine).formula[dial.dataset.as]?.[position] : "";
      // Of our own making, every text in it escaped: dials.py.
      dial.innerHTML = shown ? enclosed(dial, shown) : dial.original;
      dial.classList.toggle("moved", Boolean(position));
      // What is neutral at the truth (a factor 1, a summand 0) is not written there, and nothing to take hold of.
      const absent = !position && NEUTRAL.includes(dial.dataset.as);
      if (live) dial.tabIndex = absent ? -1 : 0;
      dial.setAttribute("aria-hidden", String(absent));
      dial.setAttribute("aria-valuenow", position);
      dial.setAttribute("aria-valuetext", facts.get(mine).texts[position]);
    }

    // The form that moves a dial: the chosen one if it does, else the first of its argument.
    function formOf(dial) {
      const mine = forms.filter((each) => each.dataset.argument === dial.dataset.dial);
      return mine.includes(form) ? form : mine[0];
    }

    // --- Dials in the formula: dragged, or moved by keys, they are the slider ---

    function dress(dial) {
      const mine = formOf(dial);
      if (!live || !mine || dial.hasAttribute("role")) return;
      dial.dataset.colour = mine.dataset.colour;
      dial.closest("math")?.setAttribute("role", "group"); // what a formula holds cannot be reached otherwise
      const { texts, words } = facts.get(mine);
      const aria = { role: "slider", tabindex: 0, "aria-label": words, "aria-valuemin": 0, "aria-valuemax": texts.length - 1 };
      Object.entries(aria).forEach(([name, value]) => dial.setAttribute(name, value));
      let begun = null;
      dial.addEventListener("pointerdown", (event) => {
        choose(formOf(dial));
        begun = { x: event.clientX, at: at(), moved: false };
        dial.setPointerCapture(event.pointerId);
        event.preventDefault(); // no selection of text
        dial.focus({ preventScroll: true });
      });
      dial.addEventListener("pointermove", (event) => {
        if (!begun) return;
        const way = event.clientX - begun.x;
        begun.moved ||= Math.abs(way) > 3;
        if (begun.moved) turn(begun.at + Math.round((way / STROKE) * (facts.get(form).texts.length - 1)));
      });
      dial.addEventListener("pointerup", () => {
        if (begun?.moved) release();
        else if (form.dataset.kind === "switch") turn(1 - at()), release();
        else form.querySelector("input[type=range]").focus();
        begun = null;
      });
      dial.addEventListener("pointercancel", () => (begun = null));
      dial.addEventListener("keydown", (event) => {
        choose(formOf(dial));
        const last = facts.get(form).texts.length - 1;
        const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: last / 4, PageDown: -last / 4 };
        const ends = { Home: 0, End: last };
        const to = ends[event.key] ?? at() + Math.sign(steps[event.key]) * Math.ceil(Math.abs(steps[event.key]));
        if (Number.isNaN(to)) return;
        event.preventDefault();
        turn(to);
        release();
      });
    }

    // Put the chosen slider or switch to a position.
    function turn(position) {
      const to = Math.min(Math.max(position, 0), facts.get(form).texts.length - 1);
      if (to === at()) return;
      if (form.dataset.kind === "switch") form.querySelectorAll("input[type=radio]")[to].checked = true;
      else form.querySelector("input[type=range]").value = to;
      turned();
    }

    function turned() {
      look();
      if (seconds < SLOW || form.dataset.kind === "switch" || remembered()) run();
    }

    // What is known of the version in the formula; of a quick check, the figure that belongs to this very lie.
    const remembered = () => answers.get(key()) ?? (seconds < SLOW ? undefined : answers.get(version()));

    function release() {
      run();
      remember(root, form, at());
    }

    function choose(next) {
      if (!next || next === form) return;
      form.hidden = true;
      form = next;
      form.hidden = false;
      root.ownerDocument.querySelectorAll("[data-choose]").forEach((link) => {
        if (link.dataset.choose === form.dataset.lie) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
      turned();
      remember(root, form, at());
    }

    // --- The check: every answer is drawn; of the questions that come while one is out, only the last is asked ---

    async function run() {
      if (running || !live) return;
      running = new AbortController();
      compare();
      const clock = setTimeout(wait, PATIENCE, performance.now());
      for (let asked = null; asked !== key() && !running.signal.aborted; ) {
        asked = key();
        const of = version();
        const answer = remembered() ?? (await ask(root.dataset.claim, form.dataset.lie, at(), running.signal));
        if (!answer.error) {
          answers.set(asked, answer);
          if (of !== asked) answers.set(of, answer);
          seconds = answer.seconds ?? seconds;
        }
        fill(answer, of);
      }
      clearTimeout(clock);
      clearInterval(part("wait").clock);
      part("wait").hidden = true;
      root.setAttribute("aria-busy", "false");
      running = null;
      compare();
    }

    function wait(began) {
      const show = () => {
        const passed = (performance.now() - began) / 1000;
        part("elapsed").textContent = `running the check, ${passed.toFixed(0)} s`;
        if (seconds > 1) part("progress").value = Math.min(passed / seconds, 0.98);
      };
      root.setAttribute("aria-busy", "true");
      part("progress").removeAttribute("value");
      part("wait").hidden = false;
      part("wait").clock = setInterval(show, 250);
      show();
    }

    function fill(answer, of) {
      // What the lab sends is its own: marks and figures, with every text in them escaped.
      part("verdict").innerHTML = answer.error ? "" : answer.verdict;
      if (answer.error) part("evidence").textContent = answer.error;
      else part("evidence").innerHTML = answer.evidence;
      root.dataset.outcome = answer.outcome ?? "";
      belongs.verdict = of;
      if (!answer.error) {
        part("figure").innerHTML = answer.figure || NO_FIGURE;
        belongs.figure = of;
      }
      compare();
    }

    // The answer that came with the page.
    function kept() {
      return { verdict: part("verdict").innerHTML, evidence: part("evidence").innerHTML, figure: part("figure").innerHTML };
    }

    forms.forEach((each) => {
      each.addEventListener("input", turned);
      each.addEventListener("change", release);
      each.addEventListener("submit", (event) => (event.preventDefault(), release()));
    });
    part("cancel").addEventListener("click", () => running?.abort());
    document.addEventListener("click", (event) => {
      const link = event.target.closest("[data-choose]");
      const next = link && forms.find((each) => each.dataset.lie === link.dataset.choose);
      if (!next || !live) return;
      event.preventDefault();
      choose(next);
      root.scrollIntoView({ block: "nearest" });
      form.querySelector("input:not([type=hidden])").focus({ preventScroll: true });
    });
    const dressed = () => (dials(root).forEach(dress), look());
    document.addEventListener("lemmata:set", dressed); // formulas that only the browser could set
    dressed();
    // A quick check says at once what there is to see; a slow one when it is asked.
    if (seconds < SLOW) run();
    else if (live) fetch(`/claim/${root.dataset.claim}/dials`).catch(() => {}); // have it imported before a slider is touched
  }

  // A negative number after a sign stands in parentheses.
  function enclosed(dial, shown) {
    const before = dial.previousElementSibling ?? dial.parentElement.previousElementSibling?.lastElementChild;
    const sign = before?.localName === "mo" && /[+−±·⋅]/.test(before.textContent);
    const negative = dial.dataset.as === "number" && shown.startsWith("<mo");
    const fence = (side) => `<mo lspace="0" rspace="0" stretchy="false">${side}</mo>`;
    return sign && negative ? fence("(") + shown + fence(")") : shown;
  }

  const dials = (root) => root.querySelectorAll("[data-dial]");

  function read({ dataset }) {
    return { texts: JSON.parse(dataset.texts), formula: JSON.parse(dataset.formula), words: dataset.words };
  }

  function ask(claim, lie, at, signal) {
    const { matches: narrow } = matchMedia("(max-width: 46rem)"); // where site.css has the narrow figures
    return post(`/claim/${claim}/probe`, { lie: Number(lie), at, seed: 0, narrow }, signal);
  }

  function remember(root, form, at) {
    if (location.pathname !== `/claim/${root.dataset.claim}`) return;
    const state = new URLSearchParams(location.search);
    state.set("lie", form.dataset.lie);
    state.set("at", at);
    history.replaceState(null, "", `?${state}${location.hash}`);
  }

  document.querySelectorAll("[data-stage]").forEach(stage);
})();
