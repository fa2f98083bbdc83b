// The graph filter lab: a response to draw on, and the graph before and after; the server filters.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, element, make } = lab;
  const [WIDE, TALL, EDGE] = [400, 200, 16]; // the response: units across, upwards, and beside it
  const KNOTS = 9;
  let gains = Array(KNOTS).fill(10); // in tenths
  let own = false; // whether the reader drew the response
  let cursor = 0;
  let held = false;
  let last = null; // while drawing: the frequency that was set last, and what passes there
  let shown = null;

  const state = () => ({ ...lab.state(), ...(own ? { gains: gains.join(",") } : {}) });
  const frequency = (k) => (2 * k) / (KNOTS - 1);
  const across = (f) => EDGE + (f / 2) * (WIDE - 2 * EDGE);
  const up = (gain) => TALL / 2 - (gain / 10) * (TALL / 2 - EDGE);
  const words = (k) => `At frequency ${short(frequency(k), 3)} the factor is ${short(gains[k] / 10, 2)}.`;

  // --- The response ---

  const label = "The response. Left and right choose a frequency, up and down change what passes.";
  const response = lab.touched({ viewBox: `0 0 ${WIDE} ${TALL}`, class: "response", "aria-roledescription": "response", "aria-label": label }, {
    down(place) {
      if (!lab.may()) return false;
      [held, last] = [true, null];
      drawTo([place]);
    },
    move: (places) => drawTo(places),
    up: () => (held = false),
    key(key, way) {
      if (!way) return false;
      if (way[0]) {
        cursor = Math.max(0, Math.min(KNOTS - 1, cursor + way[0]));
        say(words(cursor));
        draw();
      } else if (lab.may()) put(cursor, gains[cursor] + way[1]);
    },
  });
  for (const event of ["focus", "blur"]) response.addEventListener(event, draw);

  // A quick hand passes over frequencies: those between two places get what lies between.
  function drawTo(places) {
    for (const [x, y] of places) {
      const k = Math.max(0, Math.min(KNOTS - 1, Math.round(((x - EDGE) / (WIDE - 2 * EDGE)) * (KNOTS - 1))));
      const gain = (10 * (TALL / 2 - y)) / (TALL / 2 - EDGE);
      const [from, begun] = last ?? [k, gain];
      for (let j = from; j !== k; j += Math.sign(k - from)) gains[j] = within(begun + ((gain - begun) * (j - from)) / (k - from));
      last = [k, gain];
      put(k, gain);
    }
  }

  const within = (gain) => Math.max(-10, Math.min(10, Math.round(gain)));

  function put(k, gain) {
    gains[k] = within(gain);
    cursor = k;
    change(words(k), true);
  }

  function draw() {
    const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;
    const fitted = (shown?.fitted ?? []).map((gain, k) => [across(k / 20), up(10 * gain)]);
    const knots = gains.map((gain, k) => {
      const chosen = k === cursor && response.matches(":focus-visible");
      return make("circle", { cx: across(frequency(k)), cy: up(gain), r: 6, class: chosen ? "chosen" : "" }, make("title", {}, words(k)));
    });
    const levels = [[10, "1"], [0, "0"], [-10, "−1"]].flatMap(([gain, text]) => [
      make("path", { class: "level", d: `M${EDGE} ${up(gain)}H${WIDE - EDGE}` }),
      make("text", { x: 1, y: up(gain) + 4 }, text),
    ]);
    response.replaceChildren(
      ...levels,
      ...(fitted.length ? [make("path", { class: "fitted", d: path(fitted) })] : []),
      make("path", { class: "drawn", d: path(gains.map((gain, k) => [across(frequency(k)), up(gain)])) }),
      ...knots,
    );
  }

  // --- The graph, before and after: colour says the sign, its strength the size ---

  const graphs = Object.fromEntries(["before", "after"].map((name) => [name, make("svg", { viewBox: "-110 -110 220 220", class: "nodes", role: "img" })]));

  function paint(name, { places, edges }, values, most) {
    const at = places.map(([x, y]) => [100 * x, -100 * y]);
    const lines = edges.map(([a, b]) => make("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1] }));
    const dots = at.map(([cx, cy], k) => {
      const value = values[k];
      const strength = Math.min(1, Math.abs(value) / most);
      const kind = value > 0 ? "more" : value < 0 ? "less" : "";
      const dot = make("circle", { cx, cy, r: 6.5, class: kind, "fill-opacity": (0.1 + 0.9 * strength).toFixed(2) });
      dot.append(make("title", {}, `node ${k}: ${short(value, 3)}`));
      if (name === "before") dot.addEventListener("click", () => impulse(k));
      return make("g", {}, make("circle", { cx, cy, r: 6.5, class: "ground" }), dot);
    });
    graphs[name].setAttribute("aria-label", `The signal ${name} the filter, from ${short(Math.min(...values), 2)} to ${short(Math.max(...values), 2)}`);
    graphs[name].replaceChildren(...lines, ...dots);
  }

  function impulse(k) {
    if (!lab.may()) return;
    lab.set("signal", "impulse");
    lab.set("node", k);
    change(`An impulse at node ${k}.`, own);
  }

  // --- Questions and answers ---

  function show(told, newest = true, news = "") {
    shown = told;
    const most = Math.max(...told.before.map(Math.abs));
    for (const name of ["before", "after"]) paint(name, told, told[name], most);
    part("kept").textContent = `${short(100 * told.kept, 3)} %`;
    part("apart").textContent = `of the signal’s square; spectrum and polynomial are up to ${short(told.apart, 2)} apart`;
    if (newest && !held) gains = told.gains;
    draw();
    if (!newest) return;
    const seen = told.reached === null ? "" : ` The polynomial reaches ${lab.count(told.reached, "node")}.`;
    say(`${news}${seen}`.trim() || "Draw what passes of each frequency.");
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(told, drawn) {
    own = drawn;
    draw();
    ask(state(), told);
  }

  lab.controls((name) => change("", own && name !== "response" && name !== ""));

  // --- To begin with ---
  const framed = (svg, text) => element("figure", {}, svg, element("figcaption", {}, text));
  part("picture").classList.add("graphs");
  const drawn = framed(response, "what passes at the frequencies from 0 to 2; dashed, the polynomial’s");
  drawn.className = "whole";
  part("picture").replaceChildren(framed(graphs.before, "before"), framed(graphs.after, "after"), drawn);
  const given = lab.given().gains;
  if (given) [gains, own] = [given.split(",").map(Number), true];
  if (lab.first.places) show(lab.first);
  else if (lab.live) ask(state());
})();
