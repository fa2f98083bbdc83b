// The lab of two players: the start is dragged, and the server plays the game anew in three ways.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short, element } = lab;
  const [REACH, START] = [2, [1, 0]];
  const LOOK = { simultaneous: ["var(--figure-0)", "none"], alternating: ["var(--figure-1)", "6 4"], extragradient: ["var(--figure-2)", "2 3"] };
  let place = START;

  const tidy = (value) => Number(Math.max(-REACH, Math.min(REACH, value)).toFixed(2)) + 0;
  const state = () => ({ ...lab.state(), ...(place.join() === START.join() ? {} : { x: String(place[0]), y: String(place[1]) }) });
  const told = ([x, y]) => `(${short(x, 3)}, ${short(y, 3)})`;
  const trail = (places) => `M${places.map(([x, y]) => `${x} ${-y}`).join("L")}`;

  const plane = lab.plane({
    class: "plane",
    "aria-roledescription": "plane with a point",
    "aria-label": "Where both players begin, and where three ways to play lead. Arrows move the start.",
    reach: REACH,
    grip: 0.15,
    layers: ["ground", "paths", "marks"],
    places: () => [place],
    drag: (_, ...to) => put(to),
    drop: (_, x, y, moved) => moved && put([x, y], "Moved"),
    tap: (x, y) => put([x, y], "Moved"),
    key(key, way, finely) {
      if (!way) return false;
      put(place.map((value, k) => value + (finely ? 0.01 : 0.1) * way[k]), "Moved");
    },
  });

  function ground() {
    const line = (d) => make("path", { class: "rule", d, fill: "none", stroke: "var(--rule)", "stroke-width": 1 });
    const name = (text, x, y) => make("text", { x, y, "font-size": 0.13, "text-anchor": "middle", fill: "currentColor" }, text);
    const rings = [0.5, 1, 1.5, 2].map((r) => make("circle", { cx: 0, cy: 0, r, fill: "none", stroke: "var(--rule)", "stroke-width": 1 }));
    const solution = lab.dot(true, [0, 0], 0.04, { class: "nearest", fill: "var(--ink)" }, "the solution");
    plane.groups.ground.replaceChildren(line("M-2.1 0H2.1M0 -2.1V2.1"), ...rings, name("θ", 1.98, 0.16), name("φ", 0.12, -1.92), solution);
  }

  function draw() {
    const look = { class: "plus", "data-index": 0 };
    plane.groups.marks.replaceChildren(lab.dot(true, place, 0.07, look, `the start at ${told(place)}`));
  }

  function path({ name, path: places, outcome }) {
    const [stroke, dash] = LOOK[name];
    const drawn = { class: "trail", stroke, "stroke-dasharray": dash, "stroke-width": 2.4, fill: "none", "stroke-linejoin": "round" };
    const stops = places.slice(1).map(([x, y]) => make("circle", { cx: x, cy: -y, r: 0.022, fill: stroke }));
    const end = lab.dot(name !== "alternating", places.at(-1), 0.05, { class: "end", fill: stroke, stroke }, `${name}: ${outcome}`);
    return [make("path", { d: trail(places), ...drawn }), ...stops, end];
  }

  function row({ name, multiplier, distance, outcome }) {
    const [stroke, dash] = LOOK[name];
    const line = make("path", { d: "M0 5h22", stroke, "stroke-dasharray": dash, "stroke-width": 3 });
    const swatch = make("svg", { width: 26, height: 10, "aria-hidden": "true" }, line);
    const head = element("th", { scope: "row" }, swatch, name);
    const cells = [multiplier, distance, outcome].map((text) => element("td", {}, text));
    return element("tr", { className: outcome === "arrives" ? "right" : "" }, head, ...cells);
  }

  function show(answer, newest = true, news = "") {
    draw();
    plane.groups.paths.replaceChildren(...answer.rows.flatMap(path));
    part("rows").replaceChildren(...answer.rows.map(row));
    if (!newest) return;
    say(`${news} ${answer.words}`.trim());
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words = "") {
    draw();
    ask(state(), words);
  }

  function put(to, words = "") {
    if (!lab.may()) return;
    place = to.map(tidy);
    change(words && `${words} to ${told(place)}.`);
  }

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  ground();
  lab.controls((name) => {
    if (!name) place = START;
    change();
  });
  const { x, y } = lab.given();
  place = [Number(x ?? START[0]), Number(y ?? START[1])];
  draw();
  if (lab.first.rows) show(lab.first);
  else if (lab.live) ask(state());
})();
