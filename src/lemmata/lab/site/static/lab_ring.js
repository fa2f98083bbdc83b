// The ring lab: eigenvalues that are dragged in the plane, and the answer of the system to a tap, seen and heard.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short, count } = lab;
  const [REACH, MOST, START] = [1.2, 12, "0.93,0.3;0.6,0"];
  let drawn = null; // how the server drew them on a ring, until they are moved
  let points = [];
  let chosen = 0;

  // --- Points and their text; each above the axis has its mirror image below ---

  const read = (text) => (text ? text.split(";").map((pair) => pair.split(",").map(Number)) : []);
  const tidy = (value) => Number(Math.max(-REACH, Math.min(REACH, value)).toFixed(3)) + 0;
  const put = (index, x, y) => (points[index] = [tidy(x), Math.abs(tidy(y))]);
  const written = () => points.map(([x, y]) => `${x},${y}`).join(";");
  const modulus = ([x, y]) => Math.hypot(x, y);
  const degrees = ([x, y]) => (180 * Math.atan2(y, x)) / Math.PI;
  const place = (p) => `modulus ${short(modulus(p), 3)}, phase ${Math.round(degrees(p))}°`;
  const state = () => ({ ...lab.state(), ...(drawn ?? (written() === START ? {} : { points: written() })) });

  // --- The plane ---

  const plane = lab.plane({
    class: "plane disc",
    "aria-roledescription": "plane of eigenvalues",
    "aria-label": "Eigenvalues around the unit circle. N chooses the next, arrows move it, plus adds, Delete removes, Enter plays.",
    reach: REACH,
    grip: 0.1,
    fold: true,
    layers: ["ground", "mirror", "marks"],
    places: () => points,
    grab: choose,
    drag: (...moved) => (put(...moved), change()),
    drop(index, x, y, moved) {
      if (Math.max(Math.abs(x), Math.abs(y)) > REACH + 0.05) remove(index);
      else if (moved) change(`Moved to ${place(points[index])}.`);
      else say(`Chosen: ${place(points[index])}.`);
    },
    tap: add,
    key(key, way, finely) {
      if (way && points[chosen]) {
        const size = finely ? 0.005 : 0.05;
        put(chosen, points[chosen][0] + size * way[0], Math.max(0, points[chosen][1] + size * way[1]));
        change(`${place(points[chosen])}.`);
      } else if (key.toLowerCase() === "n" && points.length) {
        choose((chosen + 1) % points.length);
        say(`Point ${chosen + 1} of ${points.length}: ${place(points[chosen])}.`);
      } else if (key === "+") add(0.5, 0.5);
      else if (key === "Delete" || key === "Backspace") remove(chosen);
      else if (key === "Enter") play();
      else return false;
    },
  });
  const axes = make("path", { class: "rule", d: `M${-REACH} 0H${REACH}M0 ${-REACH}V${REACH}` });
  plane.groups.ground.append(axes, ...["inside", "circle"].map((look) => make("circle", { class: look, r: 1 })));

  function draw() {
    const side = (p) => (modulus(p) > 1 ? "minus" : "plus");
    const look = (p, index) => ({ class: `${side(p)}${index === chosen ? " chosen" : ""}`, "data-index": index });
    const mirror = ([x, y]) => make("circle", { class: side([x, y]), cx: x, cy: y, r: 0.04 });
    plane.groups.marks.replaceChildren(...points.map((p, k) => lab.dot(true, p, k === chosen ? 0.065 : 0.055, look(p, k), place(p))));
    plane.groups.mirror.replaceChildren(...points.filter(([, y]) => y !== 0).map(mirror));
    for (const name of ["modulus", "phase"]) lab.fields[name].disabled = !points[chosen];
    if (!points[chosen]) return;
    lab.set("modulus", modulus(points[chosen]));
    lab.set("phase", degrees(points[chosen]));
  }

  function choose(index) {
    chosen = index;
    draw();
  }

  // --- What came of it ---

  const ask = lab.asker((answer, newest, news) => {
    if (newest && answer.points !== written()) points = read(answer.points);
    if (answer.sound) lab.sound(answer.sound);
    show(answer, newest, news);
  });

  function show(answer, newest = true, news = "") {
    choose(Math.max(0, Math.min(chosen, points.length - 1)));
    part("radius").textContent = answer.radius.toFixed(3);
    part("memory").textContent = answer.half === null ? "" : `half of it is lost after ${count(Number(answer.half.toPrecision(3)), "step")}`;
    if (!newest) return;
    say(`${news} ${answer.words}`.trim());
    lab.remember(state());
  }

  function change(words = "") {
    if (!lab.may()) return;
    drawn = null;
    draw();
    ask(state(), words);
  }

  function add(x, y) {
    if (points.length >= MOST) return say(`There is room for ${MOST}.`);
    if (!lab.may()) return;
    chosen = points.length;
    put(chosen, x, y);
    change(`An eigenvalue of ${place(points[chosen])}.`);
  }

  function remove(index) {
    if (points[index] && lab.may()) points.splice(index, 1);
    change("Removed.");
  }

  function ring(how) {
    if (!lab.may()) return;
    drawn = { ring: how, inner: "0.5", seed: String(Math.floor(Math.random() * 10000)) };
    ask(state(), how === "radius" ? "Drawn with the modulus uniform." : "Drawn evenly over the area of the ring.");
  }

  function play() {
    if (!lab.may() || !points.length) return;
    lab.listen();
    ask({ ...state(), sound: "1" });
  }

  function turn() {
    const [r, angle] = [Number(lab.get("modulus")), (Math.PI * lab.get("phase")) / 180];
    put(chosen, r * Math.cos(angle), r * Math.sin(angle));
    change();
  }

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  lab.press({ play, radius: () => ring("radius"), area: () => ring("area") });
  for (const name of ["modulus", "phase"]) lab.fields[name].addEventListener("input", turn);
  lab.controls((name) => {
    if (!name) [points, drawn] = [read(START), null];
    ask(state());
  });
  const { points: asked = START, ring: how, inner = "0.5", seed = "0" } = lab.given();
  points = read(lab.first.points ?? asked);
  if (how) drawn = { ring: how, inner, seed };
  if (lab.first.points !== undefined) show(lab.first);
  else if (lab.live) ask(state());
})();
