// The flow lab: a point with a small square is carried through the layers, and the server bends the plane around it.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short } = lab;
  const [REACH, CELLS, LAST, START] = [3, 48, 6, [0.7, 0.4]];
  let place = START;
  let seen = null; // the newest answer

  const tidy = (value) => Number(Math.max(-REACH, Math.min(REACH, value)).toFixed(2)) + 0;
  const state = () => ({ ...lab.state(), ...(place.join() === START.join() ? {} : { x: String(place[0]), y: String(place[1]) }) });
  const told = ([x, y]) => `(${short(x, 3)}, ${short(y, 3)})`;
  const trail = (places) => `M${places.map(([x, y]) => `${x} ${-y}`).join("L")}`;

  // --- The plane ---

  const plane = lab.plane({
    class: "plane",
    "aria-roledescription": "plane with a point",
    "aria-label": "A grid after some layers, its density, and a point with a small square. Arrows move the point.",
    reach: REACH,
    grip: 0.25,
    layers: ["density", "grid", "data", "square", "marks"],
    places: () => [place],
    drag: (_, ...to) => put(to),
    drop: (_, x, y, moved) => moved && put([x, y], "Moved"),
    tap: (x, y) => put([x, y], "Moved"),
    key(key, way, finely) {
      if (key === "+" || key === "-") return turn(key === "+" ? 1 : -1);
      if (!way) return false;
      put(place.map((value, k) => value + (finely ? 0.02 : 0.1) * way[k]), "Moved");
    },
  });

  function cells(numbers) {
    const size = (2 * REACH) / CELLS;
    const corner = (k) => -REACH + k * size;
    const start = (n) => `${corner(Math.floor(n / CELLS)).toFixed(3)} ${(-corner(n % CELLS) - size).toFixed(3)}`;
    return numbers.map((n) => `M${start(n)}h${size}v${size}h${-size}z`).join("");
  }

  function draw() {
    plane.groups.marks.replaceChildren(lab.dot(true, place, 0.07, { class: "plus", "data-index": 0 }, `the point at ${told(place)}`));
  }

  function ground({ levels, lines, data, square }) {
    const thick = { class: "level", fill: "var(--figure-1)", "fill-opacity": 0.11, "shape-rendering": "crispEdges" };
    const level = (numbers) => make("path", { d: cells(numbers), ...thick });
    plane.groups.density.replaceChildren(...levels.map(level));
    const look = { class: "warped", fill: "none", stroke: "var(--ink)", "stroke-opacity": 0.5, "stroke-width": 1, "vector-effect": "non-scaling-stroke" };
    plane.groups.grid.replaceChildren(...lines.map((line) => make("path", { d: trail(line), ...look })));
    plane.groups.data.replaceChildren(...data.map((at) => lab.dot(true, at, 0.025, { fill: "var(--figure-2)" }, "")));
    const edge = { fill: "var(--figure-3)", "fill-opacity": 0.35, stroke: "var(--figure-3)", "stroke-width": 2.4, "vector-effect": "non-scaling-stroke" };
    plane.groups.square.replaceChildren(make("path", { class: "carried", d: `${trail(square)}z`, ...edge }));
  }

  // --- What came of it ---

  function show(answer, newest = true, news = "") {
    seen = answer;
    ground(answer);
    draw();
    part("det").textContent = short(answer.det, 3);
    const [area, density, noise] = [answer.area, answer.density, answer.noise].map((value) => short(value, 3));
    part("compared").textContent = `area of the square ${area} times; density ${density}, in the noise ${noise}`;
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

  // The point is carried along when the reader looks after another layer.
  function carry() {
    const to = seen?.path[Number(lab.get("layer"))];
    if (to) place = to.map(tidy);
  }

  function turn(by) {
    lab.set("layer", String(Math.max(0, Math.min(LAST, Number(lab.get("layer")) + by))));
    carry();
    change();
  }

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  lab.controls((name) => {
    if (!name) place = START;
    else if (name === "layer") carry();
    change();
  });
  const { x, y } = lab.given();
  place = [Number(x ?? START[0]), Number(y ?? START[1])];
  draw();
  if (lab.first.lines) show(lab.first);
  else if (lab.live) ask(state());
})();
