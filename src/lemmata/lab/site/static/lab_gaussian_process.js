// The lab of Gaussian processes: points on a plane, and what the server says of the functions that are left.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short, count, fields } = lab;
  const [REACH, MOST, START] = [5, 40, "-4,-1;-2.5,0.5;-1.5,1.75;1,1;2.5,-1.5"];
  let points = [];
  let best = null;

  const read = (text) => text.split(";").filter(Boolean).map((point) => point.split(",").map(Number));
  const written = () => points.map((point) => point.join(",")).join(";");
  const snap = (value) => Math.max(-REACH, Math.min(REACH, Math.round(8 * value) / 8)) + 0;
  const place = ([x, y]) => `(${short(x, 3)}, ${short(y, 3)})`;
  const state = () => ({ ...lab.state(), ...(written() === START ? {} : { points: written() }) });
  const path = (xs, ys) => `M${xs.map((x, k) => `${x} ${-Math.max(-REACH, Math.min(REACH, ys[k]))}`).join("L")}`;

  // --- The plane ---

  const plane = lab.plane({
    class: "plane",
    "aria-roledescription": "plane of points",
    "aria-label": "Data, mean and band of a Gaussian process. Arrows move a cross, Enter places a point there, Delete removes the nearest one.",
    reach: REACH,
    grip: 0.28,
    snap,
    layers: ["ground", "curves", "marks"],
    places: () => points,
    drag(index, ...to) {
      const moved = to.map(snap);
      if (fields.tool.value === "remove" || moved.join() === points[index].join()) return false;
      points[index] = moved;
      change();
    },
    drop(index, x, y, moved) {
      if (moved) change(`Moved to ${place(points[index])}.`);
      else if (fields.tool.value === "remove") remove(index);
    },
    tap: (x, y) => (fields.tool.value === "remove" ? say("No point here.") : add(x, y)),
    crossed: (x, y) => say(`${place([x, y])}${plane.nearest(x, y) < 0 ? "" : ": a point"}`),
    key(key, way, finely, cross) {
      if (key === "Enter") add(...cross);
      else if (key === "Delete" || key === "Backspace") remove(plane.nearest(...cross, 0.5));
      else return false;
    },
  });

  function draw() {
    const dots = points.map((point, k) => lab.dot(true, point, 0.14, { class: "plus", "data-index": k }, place(point)));
    plane.groups.marks.replaceChildren(...dots);
  }

  function add(x, y) {
    if (points.length >= MOST) return say(`The plane is full: ${MOST} points.`);
    if (!lab.may()) return;
    points.push([snap(x), snap(y)]);
    change(`A point at ${place(points.at(-1))}.`);
  }

  function remove(index) {
    if (index < 0) return say("No point here.");
    if (lab.may()) change(`Removed the point at ${place(points.splice(index, 1)[0])}.`);
  }

  // --- What came of it ---

  function show(answer, newest = true, news = "") {
    const { at, mean, low, high, drawn, likelihood } = answer;
    const band = `${path(at, high)}L${path([...at].reverse(), [...low].reverse()).slice(1)}z`;
    plane.groups.ground.replaceChildren(make("path", { class: "plus-side", d: band }));
    const samples = drawn.map((sample) => make("path", { class: "old-line", d: path(at, sample) }));
    plane.groups.curves.replaceChildren(...samples, make("path", { class: "line", d: path(at, mean) }));
    best = answer.best;
    part("likelihood").textContent = likelihood === null ? "–" : short(likelihood, 2);
    const choice = best && `length scale ${short(best.length_scale, 2)}, noise ${short(best.noise, 2)}`;
    part("best").textContent = best ? `at most ${short(best.likelihood, 2)} in the landscape: ${choice}` : "";
    draw();
    if (!newest) return;
    const widest = Math.max(...at.map((_, k) => high[k] - low[k])) / 2;
    const seen = `${count(points.length, "point")}; the band reaches ±${short(widest, 2)} where it is widest.`;
    const words = points.length ? seen : "No data: these functions are of the prior.";
    say(`${news} ${words}`.trim());
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words = "") {
    draw();
    ask(state(), words);
  }

  lab.press({
    best() {
      if (!best) return say("Without points every choice is as likely.");
      lab.set("length_scale", best.length_scale);
      lab.set("noise", best.noise);
      change("The most likely of the landscape.");
    },
    again() {
      lab.set("seed", Math.floor(Math.random() * 10000));
      change("Other functions of the same process.");
    },
    clear: () => lab.may() && ((points = []), change("Cleared.")),
  });

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  lab.controls((name) => {
    if (!name) points = read(START);
    change();
  });
  points = read(lab.given().points ?? START);
  draw();
  if (lab.first.mean) show(lab.first);
  else if (lab.live) ask(state());
})();
