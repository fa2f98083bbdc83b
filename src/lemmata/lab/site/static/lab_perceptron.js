// The perceptron lab: a plane of points, and a run on them that is played forwards and backwards.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, count, short } = lab;
  const REACH = 5;
  const MOST = 200;
  const fields = part("choices").elements;
  let state = lab.given(); // example and seed, or points; `at` is kept apart
  let points = [];
  let run = null; // the server's answer for `points`
  let at = 0;
  let ride = () => {};
  let cursor = [0, 0];
  let dragged = null;
  let news = ""; // what the reader did, told with what came of it

  // --- Points and their text ---

  const read = (text) =>
    [...text.matchAll(/([pn])([-.\d]+),([-.\d]+)/g)].map(([, sign, x, y]) => ({ sign: sign === "p" ? 1 : -1, x: +x, y: +y }));
  const written = () => points.map((p) => `${p.sign > 0 ? "p" : "n"}${p.x},${p.y}`).join("");
  const snap = (value) => Math.max(-REACH, Math.min(REACH, Math.round(value * 8) / 8)) + 0;
  const place = (p) => `(${short(p.x)}, ${short(p.y)})`;
  const named = (sign) => (sign > 0 ? "+1" : "−1");
  const activation = ([a, b, c], p) => a * p.x + b * p.y + c;

  // --- The plane ---

  const layers = Object.fromEntries(["sides", "ground", "proof", "lines", "marks", "cursor"].map((name) => [name, make("g", { class: name })]));
  const plane = make(
    "svg",
    {
      class: "plane",
      viewBox: `${-REACH - 0.3} ${-REACH - 0.3} ${2 * REACH + 0.6} ${2 * REACH + 0.6}`,
      tabindex: 0,
      role: "application",
      "aria-roledescription": "plane of points",
      "aria-label": "Points and line. Arrow keys move, 1 and 2 place a point of class +1 or −1, Delete removes, Space makes the next correction.",
    },
    ...Object.values(layers),
  );
  for (let k = -REACH; k <= REACH; k++) {
    const look = k ? "rule" : "axis";
    layers.ground.append(make("path", { class: look, d: `M${-REACH} ${k}H${REACH}M${k} ${-REACH}V${REACH}` }));
  }

  // The line a x + b y + c = 0 inside the square, and the part of the square where it is positive.
  function cut([a, b, c]) {
    const corners = [[-REACH, -REACH], [REACH, -REACH], [REACH, REACH], [-REACH, REACH]];
    const value = ([x, y]) => a * x + b * y + c;
    const ends = [];
    const inside = [];
    corners.forEach((corner, k) => {
      const next = corners[(k + 1) % 4];
      const [u, v] = [value(corner), value(next)];
      if (u >= 0) inside.push(corner);
      if (u >= 0 !== v >= 0) {
        const share = u / (u - v);
        const crossing = corner.map((from, i) => from + share * (next[i] - from));
        ends.push(crossing);
        inside.push(crossing);
      }
    });
    return { ends, inside };
  }

  const path = (places) => places.map(([x, y]) => `${x.toFixed(3)} ${(-y).toFixed(3)}`).join("L");
  const square = `${-REACH} ${-REACH}H${REACH}V${REACH}H${-REACH}z`;

  function drawLine(weights, before) {
    const { ends, inside } = cut(weights);
    const zero = weights.every((w) => w === 0);
    layers.sides.replaceChildren();
    layers.lines.replaceChildren();
    if (!zero) {
      layers.sides.append(make("path", { class: "minus-side", d: `M${square}` }), make("path", { class: "paper-side", d: inside.length ? `M${path(inside)}z` : "M0 0" }));
      layers.sides.append(make("path", { class: "plus-side", d: inside.length ? `M${path(inside)}z` : "M0 0" }));
    }
    const old = before && cut(before).ends;
    if (old?.length === 2) layers.lines.append(make("path", { class: "old-line", d: `M${path(old)}` }));
    if (ends.length !== 2) return;
    layers.lines.append(make("path", { class: "line", d: `M${path(ends)}` }));
    // The weights as an arrow, from the middle of the line to the side they call +1.
    const [a, b] = weights;
    const length = Math.hypot(a, b);
    const [x, y] = [(ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2];
    const [u, v] = [a / length, b / length];
    const tip = [x + 0.9 * u, y + 0.9 * v];
    const head = [[tip[0] - 0.28 * u - 0.14 * v, tip[1] - 0.28 * v + 0.14 * u], tip, [tip[0] - 0.28 * u + 0.14 * v, tip[1] - 0.28 * v - 0.14 * u]];
    layers.lines.append(make("path", { class: "arrow", d: `M${path([[x, y], tip])}M${path(head)}` }));
  }

  // From the line that is shown to the next one, unless the reader wants no motion or steps follow fast.
  let shown = [0, 0, 0];
  let gliding = 0;
  let last = 0;

  function glide(weights, before) {
    cancelAnimationFrame(gliding);
    const from = shown;
    const begun = performance.now();
    const hurried = begun - last < 150;
    last = begun;
    const turn = (now) => {
      const share = Math.min(1, Math.max(0, now - begun) / 240);
      const eased = 1 - (1 - share) ** 3;
      shown = weights.map((w, i) => from[i] + eased * (w - from[i]));
      drawLine(share < 1 ? shown : weights, before);
      if (share < 1) gliding = requestAnimationFrame(turn);
    };
    const still = lab.still.matches || hurried || from.every((w) => w === 0) || weights.every((w) => w === 0);
    turn(still ? Infinity : begun);
  }

  function shape(p, look) {
    const [x, y, r] = [p.x, -p.y, 0.17];
    return p.sign > 0 ? make("circle", { class: look, cx: x, cy: y, r }) : make("rect", { class: look, x: x - 0.15, y: y - 0.15, width: 0.3, height: 0.3 });
  }

  function drawPoints(weights) {
    const zero = weights.every((w) => w === 0);
    const corrected = run && at > 0 ? run.updates[at - 1] : -1;
    const marks = points.map((p, index) => {
      const wrong = zero || p.sign * activation(weights, p) <= 0;
      const mark = shape(p, `${p.sign > 0 ? "plus" : "minus"} ${wrong ? "wrong" : "right"}`);
      mark.dataset.index = index;
      return mark;
    });
    if (points[corrected]) marks.push(make("circle", { class: "corrected", cx: points[corrected].x, cy: -points[corrected].y, r: 0.36 }));
    layers.marks.replaceChildren(...marks);
  }

  // Why no line exists: rings as large as the weights, and the point where the two classes' means meet.
  function drawProof() {
    layers.proof.replaceChildren();
    if (!run?.proof || run.points !== written()) return;
    const [x, y] = run.proof.meeting;
    run.proof.weights.forEach((weight, k) => {
      if (!weight) return;
      const p = points[k];
      layers.proof.append(make("path", { class: p.sign > 0 ? "plus" : "minus", d: `M${p.x} ${-p.y}L${x} ${-y}` }));
      layers.proof.append(make("circle", { class: p.sign > 0 ? "plus" : "minus", cx: p.x, cy: -p.y, r: 0.22 + 0.85 * Math.sqrt(weight) }));
    });
    layers.proof.append(make("circle", { class: "meeting", cx: x, cy: -y, r: 0.09 }));
  }

  function drawCursor() {
    const [x, y] = cursor;
    layers.cursor.replaceChildren(make("path", { d: `M${x - 0.45} ${-y}h.9M${x} ${-y - 0.45}v.9` }));
  }

  // --- Showing a step ---

  function show(step) {
    const path = run?.path ?? [[0, 0, 0]];
    at = Math.max(0, Math.min(step, path.length - 1));
    const weights = path[at];
    plane.classList.toggle("done", run?.status === "separated" && at === run.updates.length && at > 0);
    glide(weights, at > 0 ? path[at - 1] : null);
    drawPoints(weights);
    drawProof();
    part("count").textContent = at.toLocaleString("en");
    part("count-word").textContent = at === 1 ? "correction" : "corrections";
    part("weight").textContent = `(${short(weights[0])}, ${short(weights[1])})`;
    part("bias").textContent = short(weights[2]);
    part("meter").value = at;
    part("at").value = at;
    ride(at - 1); // the figure begins with the first correction
  }

  function settle(words) {
    if (words) say(words);
    lab.remember({ ...address(), ...(at ? { at } : {}) });
  }

  const address = () => (state.points === undefined ? Object.fromEntries(["example", "seed"].filter((k) => state[k]).map((k) => [k, state[k]])) : { points: state.points });

  function told() {
    if (!run || !points.length) return "An empty plane: place a few points.";
    if (at === run.updates.length) return ended();
    if (at === 0) return `${count(points.length, "point")}. ${run.bound === null ? "No line separates them; the rings prove it." : `A line exists, so at most ${count(run.bound, "correction")} will be needed.`}`;
    const p = points[run.updates[at - 1]];
    const sign = p.sign > 0 ? "+" : "−";
    const was = p.sign * activation(run.path[at - 1], p) === 0 ? "on the line" : "on the wrong side";
    return `Correction ${at.toLocaleString("en")}: ${place(p)} of class ${named(p.sign)} was ${was}, so w ← w ${sign} ${place(p)} and b ← b ${sign} 1.`;
  }

  function ended() {
    if (run.status === "separated") return `Every point is on its side after ${count(run.mistakes, "correction")}${run.bound > run.mistakes ? `, of ${run.bound.toLocaleString("en")} that the theorem allows` : ": exactly the bound"}.`;
    const more = run.mistakes > run.updates.length ? ` (shown: the first ${run.updates.length.toLocaleString("en")})` : "";
    if (run.status !== "not separable") return `Still not done after ${count(run.mistakes, "correction")}${more}; the theorem allows ${run.bound.toLocaleString("en")}.`;
    return run.repeats ? `After ${count(run.mistakes, "correction")} the weights are back where they were before: it will go round for ever${more}.` : `${count(run.mistakes, "correction")} and no end in sight${more}: no line exists.`;
  }

  function step(to) {
    player.stop();
    show(to);
    settle(told());
  }

  const player = lab.player(show, () => {
    part("act=play").textContent = "Run";
    settle(told());
  });

  function sweepEnd() {
    const { updates } = run;
    let next = at + 1;
    while (next < updates.length && updates[next] > updates[next - 1]) next++;
    return next;
  }

  // --- Changing the points ---

  const ask = lab.asker((answer, newest) => {
    const toEnd = run && at > 0 && at === run.updates.length;
    run = answer;
    const fresh = newest && answer.points !== written(); // else the reader has moved a point since
    if (fresh) points = read(answer.points);
    renew(toEnd && !fresh ? answer.updates.length : Math.min(answer.at, answer.updates.length));
  });

  function renew(step) {
    part("at").max = run.updates.length;
    part("meter").max = run.bound ?? Math.max(1, run.updates.length);
    part("meter").hidden = run.bound === null;
    part("bound").textContent = points.length === 0 ? "" : run.bound === null ? "no bound: no line separates these points" : `of at most R²/γ² = ${run.bound.toLocaleString("en")}`;
    ride = lab.rider("squeeze");
    show(step);
    settle(`${news} ${told()}`.trim());
    news = "";
  }

  function change(words) {
    player.stop();
    state = { points: written() };
    drawPoints(run?.path[at] ?? [0, 0, 0]);
    layers.proof.replaceChildren();
    news = words ?? "";
    ask({ ...state });
  }

  function add(x, y, sign) {
    const [u, v] = [snap(x), snap(y)];
    if (!lab.may()) return;
    if (points.length >= MOST) return say(`The plane is full: ${MOST} points.`);
    points.push({ x: u, y: v, sign });
    change(`A point of class ${named(sign)} at ${place({ x: u, y: v })}.`);
  }

  function remove(index) {
    if (!lab.may()) return;
    const [p] = points.splice(index, 1);
    change(`Removed the point of class ${named(p.sign)} at ${place(p)}.`);
  }

  function nearest(x, y, within) {
    const distances = points.map((p) => Math.hypot(p.x - x, p.y - y));
    const index = distances.indexOf(Math.min(...distances));
    return index >= 0 && distances[index] <= within ? index : -1;
  }

  // --- Mouse, finger, keys ---

  function where(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
    return [at.x, -at.y];
  }

  plane.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = where(event);
    const reach = event.pointerType === "mouse" ? 0.28 : 0.45;
    dragged = { index: nearest(x, y, reach), moved: false };
    plane.setPointerCapture(event.pointerId);
    event.preventDefault();
    plane.focus({ focusVisible: false });
  });

  plane.addEventListener("pointermove", (event) => {
    if (!dragged || dragged.index < 0 || fields.tool.value === "remove") return;
    const [x, y] = where(event).map(snap);
    const p = points[dragged.index];
    if ((p.x === x && p.y === y) || !lab.may()) return;
    dragged.moved = true;
    Object.assign(p, { x, y });
    change();
  });

  plane.addEventListener("pointerup", (event) => {
    if (!dragged) return;
    const { index, moved } = dragged;
    dragged = null;
    const [x, y] = where(event);
    if (moved) return change(`Moved to ${place(points[index])}.`);
    if (fields.tool.value === "remove") return index >= 0 ? remove(index) : undefined;
    if (index < 0 && Math.max(Math.abs(x), Math.abs(y)) <= REACH + 0.2) add(x, y, fields.tool.value === "p" ? 1 : -1);
  });

  plane.addEventListener("pointercancel", () => (dragged = null));
  plane.addEventListener("focus", () => plane.matches(":focus-visible") && drawCursor());
  plane.addEventListener("blur", () => layers.cursor.replaceChildren());

  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  plane.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = arrows[event.key];
    if (way) {
      const size = event.shiftKey ? 0.125 : 0.5;
      cursor = cursor.map((c, i) => snap(c + size * way[i]));
      drawCursor();
      const here = nearest(...cursor, 0.3);
      say(`${place({ x: cursor[0], y: cursor[1] })}${here < 0 ? "" : `: a point of class ${named(points[here].sign)}`}`);
    } else if (event.key === "1" || event.key === "2") add(...cursor, event.key === "1" ? 1 : -1);
    else if (event.key === "Delete" || event.key === "Backspace") {
      const here = nearest(...cursor, 0.5);
      if (here < 0) say("No point here.");
      else remove(here);
    } else if (event.key === " ") step(at + 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  lab.press({
    correct: () => step(at + 1),
    sweep: () => run && step(sweepEnd()),
    back: () => step(0),
    play: () => {
      if (!run || player.playing()) return player.stop();
      const end = run.updates.length;
      const from = at === end ? 0 : at;
      player.play(from, end, Math.min(6, 0.35 * (end - from)));
      if (player.playing()) part("act=play").textContent = "Pause";
    },
    again: () => choose(fields.example.value, Math.floor(Math.random() * 10000)),
    clear: () => {
      if (!lab.may()) return;
      points = [];
      change();
    },
  });

  function choose(example, seed) {
    if (!lab.may()) return;
    player.stop();
    state = { example, ...(seed ? { seed: String(seed) } : {}) };
    run = null;
    at = 0;
    ask({ ...state });
  }

  fields.example.addEventListener("change", () => choose(fields.example.value, 0));
  part("at").addEventListener("input", () => step(Number(part("at").value)));

  // --- To begin with ---

  part("plane").replaceChildren(plane);
  if (state.example) fields.example.value = state.example;
  const begin = Number(state.at) || 0;
  delete state.at;
  if (lab.first.path) {
    run = lab.first;
    points = read(run.points);
    renew(run.at);
  } else if (lab.live) ask({ ...address(), at: String(begin) });
})();
