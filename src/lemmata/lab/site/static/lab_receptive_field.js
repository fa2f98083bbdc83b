// The receptive field lab: layers are stacked, a unit is chosen on the picture, and the server says what it sees.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, element } = lab;
  const [SIDE, EDGE, MOST, DOTS, START] = [40, 4, 8, 500, "c3.c3.p2.c3"];
  let stack = [];
  let unit = null; // row and column, or the one in the middle
  let seen = null; // the server's answer

  const written = () => stack.join(".");
  const state = () => ({
    ...lab.state(),
    ...(written() === START ? {} : { stack: written() }),
    ...(unit ? { unit: unit.join(",") } : {}),
  });
  const clamp = (value, most) => Math.max(0, Math.min(most, value));

  // --- The picture ---

  const groups = Object.fromEntries(["photo", "heat", "units", "frame"].map((name) => [name, make("g", { class: name })]));
  const svg = lab.touched(
    {
      class: "plane field",
      viewBox: `${-EDGE} ${-EDGE} ${SIDE + 2 * EDGE} ${SIDE + 2 * EDGE}`,
      "aria-roledescription": "picture",
      "aria-label": "A photograph, and what a unit sees of it. Arrow keys choose the next unit, Delete takes the last layer away.",
    },
    {
      down: ([x, y]) => Boolean(seen) && lab.may() && choose(nearest(x, y)),
      move: (places) => choose(nearest(...places.at(-1))),
      up: () => {},
      key(key, way) {
        if (way && seen && lab.may()) choose([seen.unit[0] - way[1], seen.unit[1] + way[0]]);
        else if (key === "Delete" || key === "Backspace") remove(stack.length - 1);
        else if (!way) return false;
      },
    },
  );

  // The unit whose field has its middle next to a place of the picture.
  const nearest = (x, y) => [y, x].map((place, axis) => Math.round((place - seen.center[axis]) / (seen.stride[axis] || 1)));

  function choose(next) {
    const place = next.map((n, axis) => clamp(n, seen.units[axis] - 1));
    if (String(place) === String(unit ?? seen.unit)) return;
    unit = place;
    change(`Unit in row ${place[0] + 1} of ${seen.units[0]}, column ${place[1] + 1} of ${seen.units[1]}.`);
  }

  // One path for each level, so that a picture of 1,600 places has at most 15 parts.
  function levels(text, look) {
    const paths = Array.from({ length: 16 }, () => "");
    [...text].forEach((digit, k) => (paths[parseInt(digit, 16)] += `M${k % SIDE} ${Math.floor(k / SIDE)}h1v1h-1z`));
    return paths.map((d, level) => [d, level]).filter(([d, level]) => d && level).map(([d, level]) => make("path", { d, "fill-opacity": look(level / 15) }));
  }

  function dots() {
    const [rows, columns] = seen.units;
    if (rows * columns > DOTS) return [];
    const at = (k, axis) => seen.center[axis] + k * seen.stride[axis];
    return Array.from({ length: rows * columns }, (_, k) => make("circle", { cx: at(k % columns, 1), cy: at(Math.floor(k / columns), 0), r: 0.22 }));
  }

  function draw() {
    groups.photo.replaceChildren(make("rect", { width: SIDE, height: SIDE }), ...levels(seen.photo, (level) => level));
    groups.heat.replaceChildren(...levels(seen.heat, (level) => 0.15 + 0.75 * level));
    groups.units.replaceChildren(...dots());
    const [x, y, width, height] = seen.field;
    const middle = make("circle", { class: "chosen", cx: x + width / 2, cy: y + height / 2, r: 0.5 });
    groups.frame.replaceChildren(make("rect", { x, y, width, height }), middle);
  }

  // --- The stack ---

  function row([name, map, field, stride], k) {
    const button = element("button", { type: "button", className: "quiet", ariaLabel: `Remove layer ${k + 1}, ${name}` }, "×");
    button.addEventListener("click", () => remove(k));
    const cells = [name, map, field, stride].map((text) => element("td", {}, text));
    return element("tr", {}, ...cells, element("td", {}, button));
  }

  function add(layer) {
    if (stack.length >= MOST) return say(`There is room for ${MOST} layers.`);
    if (!lab.may()) return;
    stack.push(layer);
    unit = null;
    change("One more layer.");
  }

  function remove(k) {
    if (stack.length < 2) return say("One layer must stay.");
    if (!lab.may()) return;
    stack.splice(k, 1);
    unit = null;
    change("One layer less.");
  }

  // --- What came of it ---

  function show(answer, newest = true, news = "") {
    seen = answer;
    draw();
    part("size").textContent = part("again").textContent = seen.size;
    part("words").textContent = seen.words;
    if (!newest) return;
    part("layers").replaceChildren(...seen.layers.map(row));
    say(news || `Every unit sees ${seen.size} by ${seen.size} places.`);
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words = "") {
    ask(state(), words);
  }

  // --- To begin with ---

  svg.append(...Object.values(groups));
  part("picture").replaceChildren(svg);
  lab.press(Object.fromEntries(["c3", "c5", "c3s2", "c3d2", "c3d4", "p2", "u2"].map((layer) => [layer, () => add(layer)])));
  lab.controls((name) => {
    if (!name) [stack, unit] = [START.split("."), null];
    change();
  });
  const given = lab.given();
  stack = (given.stack ?? START).split(".");
  unit = given.unit?.split(",").map(Number) ?? null;
  if (lab.first.photo) show(lab.first);
  else if (lab.live) ask(state());
})();
