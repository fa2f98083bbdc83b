// What the labs share: the state in the address, its controls, questions to the server, words and figures. See docs/labs.md;
// labs_time.js plays runs, labs_plane.js drags points, labs_map.js colours the plane.
"use strict";

window.lemmataLab = (() => {
  const root = document.querySelector("[data-lab]");
  const name = root.dataset.lab;
  const { live, post, part: fetched, patiently, follow } = window.lemmata;
  const part = (what) => root.querySelector(`[data-${what}]`);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const narrow = matchMedia("(max-width: 46rem)"); // as site.css chooses between two drawings of a figure
  const first = JSON.parse(root.dataset.shown || "{}"); // what the server showed with the page
  const locked = "To change things, open the link that lemmata serve printed.";

  // --- Words ---

  const say = (text) => (part("said").textContent = text);

  function complain(text) {
    part("problem").textContent = text ?? "";
    part("problem").hidden = !text;
  }

  const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const short = (value, digits = 4) => String(Number(value.toPrecision(digits))).replace("-", "−");

  // An element of HTML: element("td", { className: "number" }, "3").
  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  // --- The state, which is the address ---

  // A page that may only be read, or whose address makes no sense, shows how the lab begins.
  const heeded = "heeded" in root.dataset && part("problem").hidden;
  const given = () => (heeded ? Object.fromEntries(new URLSearchParams(location.search)) : {});

  function remember(state) {
    const query = String(new URLSearchParams(state)).replaceAll("%2C", ",").replaceAll("%3B", ";");
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
  }

  // Whether this page may change anything; if not, it says why.
  function may() {
    if (!live) complain(locked);
    return live;
  }

  // --- Controls: everything in the form with data-usual. A slider counts whole steps, so that its ends are exact. ---

  const form = part("choices");
  const fields = form.elements;
  const names = [...new Set([...form.querySelectorAll("[data-usual]")].map((field) => field.name))];
  const usual = (name) => form.querySelector(`[name="${name}"]`).dataset.usual;

  function get(name) {
    const field = fields[name];
    const { low, step } = field.dataset ?? {};
    return step ? String(Number((Number(low) + field.value * step).toFixed(6))) : field.value;
  }

  function set(name, value) {
    const field = fields[name];
    const { low, step } = field.dataset ?? {};
    field.value = step ? Math.round((value - low) / step) : value;
    if (field.options && field.value !== value) field.add(new Option(value, value, true, true)); // one of an address
    tell(name);
  }

  function tell(name) {
    const [out, field] = [part(`out=${name}`), fields[name]];
    if (out) out.value = get(name).replace("-", "−");
    if (field.type === "range") field.setAttribute("aria-valuetext", field.parentElement.querySelector("label").textContent);
  }

  const state = () => Object.fromEntries(names.map((name) => [name, get(name)]).filter(([name, value]) => value !== usual(name)));

  // Let the address move the controls, and the controls call `changed(name)`; the reset button, changed("").
  function controls(changed) {
    for (const [name, value] of Object.entries(given())) if (names.includes(name)) set(name, value);
    names.forEach(tell);
    form.addEventListener("input", ({ target }) => {
      if (!names.includes(target.name) || !form.checkValidity()) return;
      tell(target.name);
      if (may()) changed(target.name);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    const reset = () => may() && (names.forEach((name) => set(name, usual(name))), changed(""));
    press({ reset, share });
  }

  function press(acts) {
    root.querySelectorAll("[data-act]").forEach((button) => {
      const act = acts[button.dataset.act];
      if (act) button.addEventListener("click", act);
    });
  }

  async function share({ target }) {
    const said = target.textContent;
    const done = navigator.clipboard?.writeText(location.href).then(() => "Copied", () => "It stands above");
    target.textContent = (await done) ?? "It stands above";
    setTimeout(() => (target.textContent = said), 1600);
  }

  // --- Questions ---

  function wait(cancel) {
    part("busy").hidden = !cancel;
    part("cancel").onclick = cancel;
  }

  // One question at a time. Every answer is shown, so that nothing stands still while a slider is dragged; of the
  // questions that come meanwhile only the newest is asked. `heard(answer, newest, news)`: no other is on its way, and
  // what the reader did, told with what came of it. Answers to a hand that drags are brief; once it rests, the figures
  // come whole, with their tables and files.
  function asker(heard) {
    let waiting = null;
    let busy = false;
    let asked = null; // the newest question that was not cancelled
    let lost = false; // it had no answer
    let rest = 0;
    const put = (state, brief, signal) => post(`/labs/${name}/show`, { state, brief }, signal);

    async function run() {
      busy = true;
      root.setAttribute("aria-busy", "true");
      while (waiting) {
        const { state, news } = waiting;
        waiting = null;
        const begun = performance.now();
        const answer = await patiently((signal) => put(state, narrow.matches ? "narrow" : "wide", signal), wait);
        complain(answer.stopped ? "" : answer.error);
        if (answer.stopped) continue;
        asked = { state, news };
        lost = Boolean(answer.error);
        if (lost) continue;
        show(answer);
        heard(answer, waiting === null, news);
        performance.measure("lab-update", { start: begun });
      }
      busy = false;
      root.setAttribute("aria-busy", "false");
      if (asked) rest = setTimeout(settle, 300, asked);
    }

    async function settle(question) {
      const answer = await put(question.state, "");
      if (answer.error || question !== asked || busy) return;
      show(answer);
      if (!lost) return;
      lost = false; // what was lost is answered after all
      complain("");
      heard(answer, true, question.news);
    }

    return (state, news = "") => {
      clearTimeout(rest);
      waiting = { state, news };
      if (!busy) run();
    };
  }

  // A lab of controls alone: every change is asked, every answer shown.
  function begin(show) {
    const ask = asker((answer, newest) => {
      show(answer);
      if (newest) remember(state());
    });
    controls(() => ask(state()));
    if (first.python !== undefined) show(first);
    else if (live) ask(state());
  }

  // --- Figures ---

  const curves = { ...first.curves }; // the numbers behind the drawings, by name

  function show({ figures = {}, curves: fresh, python }) {
    for (const [what, drawn] of Object.entries(figures)) {
      const place = root.querySelector(`[data-figure="${what}"]`);
      if (!place) continue;
      const open = place.querySelector("details")?.open;
      const old = place.querySelector(narrow.matches ? "figure > svg.narrow" : "figure > svg.wide");
      // The lab's own figures, every text in them escaped; a brief answer has the drawing alone.
      if (fresh || !old) place.innerHTML = drawn;
      else old.outerHTML = drawn;
      if (open && place.querySelector("details")) place.querySelector("details").open = true;
      if (!fresh) delete curves[what];
    }
    Object.assign(curves, fresh);
    tip.hidden = true;
    if (python) part("python").textContent = python;
  }

  // The number under the pointer, for curves: each vertex of a drawn curve is one of its numbers.
  const tip = element("p", { className: "tip", hidden: true, role: "presentation" });
  document.body.append(tip);

  function vertices(svg, { lines, x_log, y_log }) {
    const drawn = [...svg.querySelectorAll("path[fill=none]")].map((path) => path.getAttribute("d")).filter((d) => d.includes("L"));
    const places = drawn.flatMap((d) => d.slice(1).split("L").map((pair) => pair.split(" ").map(Number)));
    const fits = (value, log) => value !== null && (!log || value > 1e-300);
    const known = lines.flatMap(({ label, x, y }) => x.map((u, k) => ({ label, u, v: y[k] })).filter(({ u, v }) => fits(u, x_log) && fits(v, y_log)));
    return known.length === places.length ? known.map((each, k) => ({ ...each, at: places[k] })) : [];
  }

  root.addEventListener("pointermove", (event) => {
    const svg = event.pointerType === "mouse" && event.buttons === 0 && event.target.closest?.("[data-figure] svg");
    const known = svg && curves[svg.closest("[data-figure]").dataset.figure];
    tip.hidden = true;
    if (!known) return;
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const near = vertices(svg, known).map((each) => ({ ...each, far: Math.hypot(each.at[0] - x, each.at[1] - y) }));
    const best = near.reduce((a, b) => (a && a.far <= b.far ? a : b), null);
    if (!best || best.far > 24) return;
    tip.textContent = `${best.label ? `${best.label}: ` : ""}${short(best.v, 3)} at ${short(best.u)}`;
    tip.hidden = false;
    const width = tip.offsetWidth;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + scrollX}px`;
    tip.style.top = `${event.clientY + scrollY - 34}px`;
  });
  root.addEventListener("pointerleave", () => (tip.hidden = true));

  return {
    root, name, part, first, live, still, given, remember, post, fetched, follow, asker, begin, say, complain, may, show,
    element, fields, get, set, state, controls, press, count, short,
  };
})();
