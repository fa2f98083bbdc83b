// The ring lab: eigenvalues that are dragged in the plane, and the answer of the system to a tap, seen and heard.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short, count } = lab;
  const REACH = 1.2;
  const MOST = 12;
  const fields = part("choices").elements;
  const USUAL = { points: "0.93,0.3;0.6,0", steps: "80" };
  let state = { ...USUAL, ...lab.given() };
  let points = [];
  let chosen = 0;
  let dragged = null;
  let news = "";
  let audio = null;
  delete state.sound;

  // --- Points and their text ---

  const read = (text) => (text ? text.split(";").map((pair) => pair.split(",").map(Number)) : []);
  const tidy = (value) => Number(Math.max(-REACH, Math.min(REACH, value)).toFixed(3)) + 0;
  const written = () => points.map(([x, y]) => `${x},${y}`).join(";");
  const modulus = ([x, y]) => Math.hypot(x, y);
  const degrees = ([x, y]) => (180 * Math.atan2(y, x)) / Math.PI;
  const place = (p) => `modulus ${short(Number(modulus(p).toFixed(3)))}, phase ${Math.round(degrees(p))}°`;

  // --- The plane ---

  const layers = Object.fromEntries(["ground", "mirror", "marks"].map((name) => [name, make("g", { class: name })]));
  const disc = make(
    "svg",
    {
      class: "plane disc",
      viewBox: `${-REACH - 0.06} ${-REACH - 0.06} ${2 * REACH + 0.12} ${2 * REACH + 0.12}`,
      tabindex: 0,
      role: "application",
      "aria-roledescription": "plane of eigenvalues",
      "aria-label": "Eigenvalues around the unit circle. N chooses the next, arrow keys move it, plus adds, Delete removes, Enter plays.",
    },
    ...Object.values(layers),
  );
  layers.ground.append(
    make("path", { class: "rule", d: `M${-REACH} 0H${REACH}M0 ${-REACH}V${REACH}` }),
    make("circle", { class: "inside", r: 1 }),
    make("circle", { class: "rule", r: 0.5 }),
    make("circle", { class: "circle", r: 1 }),
  );

  function draw() {
    const look = (p, index) => `${modulus(p) > 1 ? "minus" : "plus"}${index === chosen ? " chosen" : ""}`;
    layers.mirror.replaceChildren(...points.filter(([, y]) => y !== 0).map((p) => make("circle", { class: look(p, -1), cx: p[0], cy: p[1], r: 0.035 })));
    layers.marks.replaceChildren(...points.map((p, index) => make("circle", { class: look(p, index), cx: p[0], cy: -p[1], r: index === chosen ? 0.055 : 0.045, "data-index": index })));
    const p = points[chosen];
    for (const name of ["modulus", "phase"]) fields[name].disabled = !p;
    if (!p) return;
    fields.modulus.value = modulus(p);
    fields.phase.value = Math.round(degrees(p));
    part("out=modulus").value = modulus(p).toFixed(3);
    part("out=phase").value = Math.round(degrees(p));
  }

  // --- What came of it ---

  function told(answer) {
    if (answer.verdict === "empty") return "No eigenvalues: add one.";
    const how = {
      forgets: "Everything is forgotten in time: states stay bounded under every bounded input.",
      rings: "It rings for ever: bounded by itself, but an input in step with it makes the state grow.",
      explodes: "It explodes: an eigenvalue lies outside the unit circle.",
    };
    return how[answer.verdict];
  }

  const ask = lab.asker((answer, newest) => {
    if (newest && answer.points !== written()) {
      points = read(answer.points);
      chosen = Math.min(chosen, Math.max(0, points.length - 1));
    }
    if (answer.sound) sound(answer.sound);
    show(answer, newest);
  });

  function show(answer, newest = true) {
    draw();
    part("radius").textContent = answer.radius.toFixed(3);
    part("memory").textContent = answer.half === null ? "" : `half of it is lost after ${count(Number(answer.half.toPrecision(3)), "step")}`;
    if (!newest) return;
    say(`${news} ${told(answer)}`.trim());
    news = "";
    lab.remember(address());
  }

  const address = () => Object.fromEntries(Object.entries(state).filter(([name, value]) => value !== undefined && value !== USUAL[name]));

  function change(words) {
    if (!lab.may()) return;
    state = { points: written(), steps: fields.steps.value };
    news = words ?? "";
    draw();
    ask({ ...state });
  }

  function set(index, x, y) {
    points[index] = [tidy(x), Math.abs(tidy(y))]; // its mirror image is the other one of the pair
  }

  function add(x, y) {
    if (!lab.may()) return;
    if (points.length >= MOST) return say(`There is room for ${MOST}.`);
    points.push([tidy(x), Math.abs(tidy(y))]);
    chosen = points.length - 1;
    change(`An eigenvalue of ${place(points[chosen])}.`);
  }

  function remove(index) {
    if (!points[index] || !lab.may()) return;
    points.splice(index, 1);
    chosen = Math.max(0, Math.min(chosen, points.length - 1));
    change("Removed.");
  }

  // --- Sound ---

  function sound({ rate, samples }) {
    const bytes = Uint8Array.from(atob(samples), (letter) => letter.charCodeAt(0));
    const levels = new Int16Array(bytes.buffer);
    audio ??= new AudioContext();
    const buffer = audio.createBuffer(1, levels.length, rate);
    buffer.copyToChannel(Float32Array.from(levels, (level) => (0.5 * level) / 32768), 0);
    const source = audio.createBufferSource();
    source.buffer = buffer;
    source.connect(audio.destination);
    source.start();
    disc.dataset.played = String(Number(disc.dataset.played ?? 0) + 1);
  }

  function play() {
    if (!lab.may() || !points.length) return;
    audio ??= new AudioContext(); // within the click, or browsers keep it silent
    audio.resume();
    ask({ ...state, sound: "1" });
  }

  // --- Mouse, finger, keys ---

  function where(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(disc.getScreenCTM().inverse());
    return [at.x, -at.y];
  }

  function nearest(x, y, within) {
    const distances = points.map((p) => Math.hypot(p[0] - x, p[1] - Math.abs(y)));
    const index = distances.indexOf(Math.min(...distances));
    return index >= 0 && distances[index] <= within ? index : -1;
  }

  const outside = ([x, y]) => Math.max(Math.abs(x), Math.abs(y)) > REACH + 0.06;

  disc.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = where(event);
    const index = nearest(x, y, event.pointerType === "mouse" ? 0.09 : 0.16);
    if (index >= 0) chosen = index;
    dragged = { index, moved: false };
    disc.setPointerCapture(event.pointerId);
    event.preventDefault();
    disc.focus({ focusVisible: false });
    draw();
  });

  disc.addEventListener("pointermove", (event) => {
    if (!dragged || dragged.index < 0 || !lab.may()) return;
    dragged.moved = true;
    set(dragged.index, ...where(event));
    change();
  });

  disc.addEventListener("pointerup", (event) => {
    if (!dragged) return;
    const { index, moved } = dragged;
    dragged = null;
    const at = where(event);
    if (index < 0) return outside(at) ? undefined : add(...at);
    if (outside(at)) return remove(index);
    if (moved) change(`Moved to ${place(points[index])}.`);
    else say(`Chosen: ${place(points[index])}.`);
  });

  disc.addEventListener("pointercancel", () => (dragged = null));

  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  disc.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = arrows[event.key];
    if (way && points[chosen]) {
      const size = event.shiftKey ? 0.005 : 0.05;
      const [x, y] = points[chosen];
      set(chosen, x + size * way[0], Math.max(0, y + size * way[1]));
      change(`${place(points[chosen])}.`);
    } else if (event.key === "n" || event.key === "N") {
      if (!points.length) return;
      chosen = (chosen + 1) % points.length;
      draw();
      say(`Point ${chosen + 1} of ${points.length}: ${place(points[chosen])}.`);
    } else if (event.key === "+") add(0.5, 0.5);
    else if (event.key === "Delete" || event.key === "Backspace") remove(chosen);
    else if (event.key === "Enter") play();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  for (const name of ["modulus", "phase"]) {
    fields[name].addEventListener("input", () => {
      if (!points[chosen]) return;
      const angle = (Math.PI * fields.phase.value) / 180;
      const [x, y] = [fields.modulus.value * Math.cos(angle), fields.modulus.value * Math.sin(angle)];
      set(chosen, x, fields.phase.value === "180" ? 0 : y);
      change();
    });
  }
  fields.steps.addEventListener("input", () => {
    part("out=steps").value = fields.steps.value;
    if (!lab.may()) return;
    state.steps = fields.steps.value;
    ask({ ...state });
  });
  part("choices").addEventListener("submit", (event) => event.preventDefault());

  function ring(how) {
    if (!lab.may()) return;
    const seed = String(Math.floor(Math.random() * 10000));
    state = { ring: how, inner: state.inner ?? "0.5", seed, steps: fields.steps.value };
    chosen = 0;
    news = how === "radius" ? "Drawn with the modulus uniform." : "Drawn evenly over the area of the ring.";
    ask({ ...state });
  }

  lab.press({ play, radius: () => ring("radius"), area: () => ring("area") });

  // --- To begin with ---

  part("disc").replaceChildren(disc);
  if (state.ring) delete state.points;
  fields.steps.value = state.steps;
  part("out=steps").value = state.steps;
  if (lab.first.points !== undefined) {
    points = read(lab.first.points);
    show(lab.first);
  } else if (lab.live) ask({ ...state });
})();
