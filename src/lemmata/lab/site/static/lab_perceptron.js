// The perceptron lab: a plane of points, and a run on them that is played forwards and backwards.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, count, short, fields } = lab;
  const [REACH, MOST] = [5, 200];
  let placed = false; // points by the reader's hand, else an example
  let seed = "0";
  let points = [];
  let run = null; // the server's answer

  const { read, written, snap, place, named, look, mark, value } = lab.classes(REACH);
  const state = () => (placed ? { points: written(points) } : { ...lab.state(), ...(seed === "0" ? {} : { seed }) });

  // --- The plane ---

  const plane = lab.plane({
    class: "plane",
    "aria-roledescription": "plane of points",
    "aria-label": "Points and line. Arrows move, 1 and 2 place a point of class +1 or −1, Delete removes, Space makes the next correction.",
    reach: REACH,
    grip: 0.28,
    snap,
    layers: ["sides", "ground", "proof", "lines", "marks"],
    places: () => points.map((p) => [p.x, p.y]),
    drag(index, ...to) {
      const [x, y] = to.map(snap);
      if (fields.tool.value === "remove" || (points[index].x === x && points[index].y === y)) return false;
      points[index] = { ...points[index], x, y };
      change();
    },
    drop(index, x, y, moved) {
      if (moved) change(`Moved to ${place(points[index])}.`);
      else if (fields.tool.value === "remove") remove(index);
    },
    tap: (x, y) => fields.tool.value !== "remove" && add(x, y, fields.tool.value === "p" ? 1 : -1),
    crossed(x, y) {
      const under = points[plane.nearest(x, y)];
      say(`${place({ x, y })}${under ? `: a point of ${named(under)}` : ""}`);
    },
    key(key, way, finely, cross) {
      if (key === "1" || key === "2") add(...cross, key === "1" ? 1 : -1);
      else if (key === "Delete" || key === "Backspace") remove(plane.nearest(...cross, 0.5));
      else if (key === " ") time.go(time.at() + 1);
      else return false;
    },
  });
  const { ground, proof, marks } = plane.groups;
  for (let k = -REACH; k <= REACH; k++) ground.append(make("path", { class: k ? "rule" : "axis", d: `M${-REACH} ${k}H${REACH}M${k} ${-REACH}V${REACH}` }));

  function drawPoints(at) {
    const weights = run?.path[at] ?? [0, 0, 0];
    const corrected = points[run?.updates[at - 1]];
    const ring = corrected ? [make("circle", { class: "corrected", cx: corrected.x, cy: -corrected.y, r: 0.36 })] : [];
    marks.replaceChildren(...points.map((p, index) => mark(p, index, weights)), ...ring);
    proof.replaceChildren(...(run?.proof && run.points === written(points) ? rings(run.proof) : []));
  }

  // Why no line exists: rings as large as the weights, and the point where the two classes' means meet.
  function rings({ weights, meeting: [x, y] }) {
    const drawn = points.flatMap((p, k) => {
      const ring = make("circle", { class: look(p), cx: p.x, cy: -p.y, r: 0.22 + 0.85 * Math.sqrt(weights[k]) });
      return weights[k] ? [make("path", { class: look(p), d: `M${p.x} ${-p.y}L${x} ${-y}` }), ring] : [];
    });
    return [...drawn, make("circle", { class: "meeting", cx: x, cy: -y, r: 0.09 })];
  }

  // --- Showing a step ---

  const [line, ride] = [lab.line(plane.groups, REACH), lab.rider("squeeze")];
  const time = lab.timeline({ show, told, state, seconds: (steps) => Math.min(6, 0.35 * steps) });

  function show(at) {
    const [a, b, c] = run.path[at];
    plane.svg.classList.toggle("done", run.status === "separated" && at === run.updates.length && at > 0);
    line(run.path[at], run.path[at - 1]);
    drawPoints(at);
    part("count").textContent = count(at, "correction");
    part("weights").textContent = `w = (${short(a)}, ${short(b)}), b = ${short(c)}`;
    part("meter").value = at;
    ride(at - 1); // the figure begins with the first correction
  }

  function told(at) {
    if (at === 0 || at === run.updates.length) return at ? run.ended : run.began;
    const p = points[run.updates[at - 1]];
    const was = p.sign * value(run.path[at - 1], p) === 0 ? "on the line" : "on the wrong side";
    const sign = p.sign > 0 ? "+" : "−";
    return `Correction ${at.toLocaleString("en")}: ${place(p)} of ${named(p)} was ${was}, so w ← w ${sign} ${place(p)} and b ← b ${sign} 1.`;
  }

  // --- Changing the points ---

  const ask = lab.asker((answer, newest, news) => {
    const toEnd = placed && time.at() > 0 && time.at() === time.end();
    if (newest && answer.points !== written(points)) points = read(answer.points); // else the reader has moved one since
    renew(answer, toEnd ? answer.updates.length : answer.at, newest, news);
  });

  function renew(answer, step, newest = true, news = "") {
    run = answer;
    part("meter").max = run.bound ?? 1;
    part("meter").style.visibility = run.bound === null ? "hidden" : "";
    part("bound").textContent = run.limit;
    time.renew(run.updates.length, step);
    if (!newest) return;
    time.rest(news);
  }

  function change(words = "") {
    time.stop();
    placed = true;
    drawPoints(time.at());
    ask(state(), words);
  }

  function add(x, y, sign) {
    if (points.length >= MOST) return say(`The plane is full: ${MOST} points.`);
    if (!lab.may()) return;
    points.push({ x: snap(x), y: snap(y), sign });
    change(`A point of ${named(points.at(-1))} at ${place(points.at(-1))}.`);
  }

  function remove(index) {
    if (index < 0) return say("No point here.");
    if (lab.may()) change(`Removed the point at ${place(points.splice(index, 1)[0])}.`);
  }

  lab.press({
    sweep: () => time.go(run.sweeps.find((end) => end > time.at()) ?? run.updates.length),
    again: () => begin(String(Math.floor(Math.random() * 10000))),
    clear: () => lab.may() && ((points = []), change()),
  });
  const begin = (fresh) => lab.may() && (time.stop(), ([placed, seed] = [false, fresh]), ask(state()));
  lab.controls(() => begin("0"));

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  const { points: asked, seed: drawn = "0", at } = lab.given();
  [placed, seed] = [asked !== undefined, drawn];
  points = read(lab.first.points ?? asked ?? "");
  if (lab.first.path) renew(lab.first, lab.first.at);
  else if (lab.live) ask({ ...state(), ...(at ? { at } : {}) });
})();
