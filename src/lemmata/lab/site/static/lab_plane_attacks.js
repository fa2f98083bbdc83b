// The lab of attacks in the plane: a point is dragged, and the server attacks it anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short, element } = lab;
  const [REACH, START] = [2, [-0.68, 0.75]];
  const LOOK = { FGSM: ["var(--figure-2)", "none"], PGD: ["var(--figure-3)", "none"], DeepFool: ["var(--figure-4)", "6 4"] };
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
    "aria-label": "A point, the ball around it, and the paths of attacks. Arrows move the point.",
    reach: REACH,
    grip: 0.15,
    layers: ["ground", "moons", "balls", "paths", "marks"],
    places: () => [place],
    drag: (_, ...to) => put(to),
    drop: (_, x, y, moved) => moved && put([x, y], "Moved"),
    tap: (x, y) => put([x, y], "Moved"),
    key(key, way, finely) {
      if (!way) return false;
      put(place.map((value, k) => value + (finely ? 0.01 : 0.05) * way[k]), "Moved");
    },
  });

  // All that is as far from the point, in the norm of the attacks.
  function ball(radius, attributes) {
    const [x, y] = place;
    const look = { fill: "none", stroke: "var(--ink)", "stroke-width": 1.6, ...attributes };
    if (lab.get("norm") === "2") return make("circle", { cx: x, cy: -y, r: radius, ...look });
    if (lab.get("norm") === "inf") return make("rect", { x: x - radius, y: -y - radius, width: 2 * radius, height: 2 * radius, ...look });
    return make("path", { d: `${trail([[x + radius, y], [x, y + radius], [x - radius, y], [x, y - radius]])}z`, ...look });
  }

  function point() {
    const words = `the point at ${told(place)}`;
    return lab.dot(seen?.class !== 1, place, 0.07, { class: seen?.class === 1 ? "minus" : "plus", "data-index": 0 }, words);
  }

  function draw() {
    plane.groups.marks.replaceChildren(point());
    const exact = seen && lab.get("norm") === seen.norm ? [ball(seen.radius, { class: "exact", "stroke-dasharray": "2 4" })] : [];
    plane.groups.balls.replaceChildren(ball(Number(lab.get("eps")), { class: "allowed", "stroke-width": 2.4 }), ...exact);
  }

  function ground({ areas, moons }) {
    const all = (kept) => areas.filter(kept).map(({ corners }) => `${trail(corners)}z`).join("");
    const side = (k) => make("path", { class: k ? "minus-side" : "plus-side", d: all((area) => area.class === k) });
    plane.groups.ground.replaceChildren(side(0), side(1), make("path", { class: "rule", d: all(() => true) }));
    const dot = ([x, y, k]) => lab.dot(k === 0, [x, y], 0.022, { class: k ? "minus" : "plus", fill: "currentColor", "fill-opacity": 0.6 }, "");
    plane.groups.moons.replaceChildren(...moons.map(dot));
  }

  function path({ name, path: places, found, fooled, cheats, outcome }) {
    const [stroke, dash] = LOOK[name];
    const drawn = { class: "trail", stroke, "stroke-dasharray": dash, "stroke-width": 2.6, fill: "none", "stroke-linejoin": "round" };
    const line = make("path", { d: trail(places), ...drawn });
    const turns = name === "PGD" ? places.map(([x, y]) => make("circle", { cx: x, cy: -y, r: 0.018, fill: stroke })) : [];
    const look = { class: "end", stroke, "stroke-width": 2.2, fill: fooled && !cheats ? stroke : "var(--paper)" };
    return [line, ...turns, lab.dot(name !== "PGD", found, 0.045, look, `${name}: ${outcome}`)];
  }

  function row({ name, distance, outcome, fooled, cheats }) {
    const [stroke, dash] = LOOK[name];
    const line = make("path", { d: "M0 5h22", stroke, "stroke-dasharray": dash, "stroke-width": 3 });
    const swatch = make("svg", { width: 26, height: 10, "aria-hidden": "true" }, line);
    const head = element("th", { scope: "row" }, swatch, name);
    const cells = [short(distance, 3), outcome].map((text) => element("td", {}, text));
    return element("tr", { className: cheats ? "wrong" : fooled ? "right" : "" }, head, ...cells);
  }

  // --- What came of it ---

  function show(answer, newest = true, news = "") {
    seen = answer;
    ground(answer);
    draw();
    const nearest = lab.dot(true, answer.nearest, 0.045, { class: "nearest", fill: "var(--ink)" }, `the nearest other answer, ${answer.radius} away`);
    plane.groups.paths.replaceChildren(...answer.rows.flatMap(path), nearest);
    part("radius").textContent = short(answer.radius, 3);
    part("compared").textContent = `from ${told(answer.place)}, which is answered “${answer.answer}”; ε is ${short(Number(lab.get("eps")), 3)}`;
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
