// The optimiser race: trails on a relief, lanes beside it, and a start that is dragged.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short, element } = lab;
  const [START, SIZE, BANDS, LANE] = ["descent,heavy,nesterov,adam", 420, 14, 100];
  const boxes = [...part("racers").querySelectorAll("input")];
  let [shown, moved] = [null, null]; // the newest answer, and the start where the reader has put it

  const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value).join(",");
  const fixed = () => lab.get("place") === "network";
  const begun = () => (moved && !fixed() ? { x: String(moved[0]), y: String(moved[1]) } : {});
  const state = () => ({ ...lab.state(), ...begun(), ...(chosen() === START ? {} : { racers: chosen() }) });
  const flat = ([x, y]) => [(x - shown.window[0]) / shown.window[2], (y - shown.window[1]) / shown.window[2]];
  const edge = (value) => Math.max(-1, Math.min(1, value));
  const tidy = (value) => Number(Math.max(-6, Math.min(6, value)).toFixed(2)) + 0;

  // --- The relief: heights between the cells, in bands, with a line where one band ends ---

  const canvas = element("canvas", { className: "map", width: SIZE, height: SIZE, ariaHidden: "true" });

  function paint() {
    const cells = shown.relief.match(/../g).map((pair) => parseInt(pair, 16));
    const side = Math.sqrt(cells.length);
    const ink = getComputedStyle(lab.root).color.match(/[\d.]+/g).map(Number);
    const image = new ImageData(SIZE, SIZE);
    const band = new Uint8Array(SIZE * SIZE);
    for (let k = 0; k < band.length; k++) {
      const [u, v] = [((k % SIZE) / SIZE) * (side - 1), (1 - Math.floor(k / SIZE) / SIZE) * (side - 1)];
      const [j, i] = [Math.min(Math.floor(u), side - 2), Math.min(Math.floor(v), side - 2)];
      const [a, b, at] = [u - j, v - i, i * side + j];
      const height = (1 - b) * ((1 - a) * cells[at] + a * cells[at + 1]) + b * ((1 - a) * cells[at + side] + a * cells[at + side + 1]);
      band[k] = (height * BANDS) / 256;
      const line = (k >= SIZE && band[k] !== band[k - SIZE]) || (k % SIZE && band[k] !== band[k - 1]);
      image.data.set([ink[0], ink[1], ink[2], 5 * band[k] + (line ? 34 : 0)], 4 * k);
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }
  document.addEventListener("lemmata:theme", () => shown && paint());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown && paint());

  const plane = lab.plane({
    class: "plane race",
    "aria-roledescription": "landscape with a start to drag",
    "aria-label": "A landscape and the paths of the optimisers. Arrows move their start, space starts the race.",
    reach: 1,
    grip: 0.12,
    layers: ["trails", "marks"],
    places: () => (shown && !fixed() ? [flat(shown.start)] : []),
    drag: (_, u, v) => put(u, v),
    drop: (_, u, v) => put(u, v, "From here they start."),
    tap: (u, v) => put(u, v, "From here they start."),
    key(key, way, finely) {
      if (key === " ") return time.play();
      if (!way || !shown) return false;
      const size = finely ? 0.01 : 0.06;
      put(...flat(shown.start).map((c, k) => c + size * way[k]), "The start has moved.");
    },
  });

  function put(u, v, words = "") {
    if (fixed()) return say("The start of a network is drawn: change its seed.");
    if (!lab.may()) return;
    moved = shown.start = [u, v].map((c, k) => tidy(shown.window[k] + shown.window[2] * edge(c)));
    change(words);
  }

  const ray = (k) => [Math.cos, Math.sin].map((way) => (k % 2 ? 0.028 : 0.075) * way((k * Math.PI) / 8));
  const burst = ([u, v]) => Array.from({ length: 16 }, (_, k) => `${u + ray(k)[0]} ${ray(k)[1] - v}`).join("L");

  function trail({ name, path, lost }, colour, step) {
    const seen = path.slice(0, Math.min(step, lost ?? step) + 1).map(flat);
    const head = seen.at(-1).map(edge);
    const off = lost !== null && step >= lost;
    const d = `M${seen.map(([u, v]) => `${u.toFixed(4)} ${(-v).toFixed(4)}`).join("L")}`;
    const end = off ? make("path", { d: `M${burst(head)}z`, class: "burst" }) : make("circle", { cx: head[0], cy: -head[1], r: 0.034 });
    end.append(make("title", {}, name));
    return make("g", { class: `trail c${colour}` }, make("path", { d, class: "way" }), end);
  }

  function draw(step) {
    const minima = shown.minima.map(flat).map(([u, v]) => make("path", { class: "goal", d: `M${u} ${-v - 0.05}v.1M${u - 0.05} ${-v}h.1` }));
    const [u, v] = flat(shown.start);
    plane.groups.marks.replaceChildren(...minima, ...(fixed() ? [] : [make("circle", { class: "begin", cx: u, cy: -v, r: 0.045 })]));
    plane.groups.trails.replaceChildren(...shown.racers.map((racer, k) => trail(racer, k, step)));
    part("now").value = step;
    lanes(step);
  }

  const finished = ({ arrived, lost }, step) => lost === null && arrived !== null && step >= arrived;
  const ranked = () => shown.racers.filter((racer) => finished(racer, Infinity)).sort((a, b) => a.arrived - b.arrived);

  function lanes(step) {
    const order = ranked();
    part("lanes").replaceChildren(...shown.racers.map((racer, colour) => {
      const { name, heights, arrived, lost } = racer;
      const gone = lost !== null && step >= lost;
      const height = heights[Math.min(step, heights.length - 1)];
      const share = finished(racer, step) ? 1 : gone ? 0 : Math.max(0, Math.min(0.99, Math.log(heights[0] / height) / Math.log(1 / shown.finish) || 0));
      const rank = order.findIndex((other) => other.arrived === arrived) + 1;
      const word = gone ? `flew off at ${lost}` : finished(racer, step) ? `${rank}. at ${arrived}` : `${short((100 * height) / heights[0], 2)} %`;
      const runner = element("span", { className: gone ? "runner gone" : "runner" }, gone ? "✸" : "");
      runner.style.left = `${LANE * share}%`;
      const lane = element("span", { className: `lane c${colour}`, ariaHidden: "true" }, runner);
      const first = rank === 1 && finished(racer, step) ? "first" : "";
      return element("li", { className: first }, name, lane, element("span", { className: "note" }, word));
    }));
  }

  function told(step) {
    const order = ranked().filter((racer) => finished(racer, step));
    const off = shown.racers.filter(({ lost }) => lost !== null && step >= lost).map(({ name }) => name);
    const first = order.length ? `${order[0].name} is there first, at step ${order[0].arrived}.` : "Nobody has arrived.";
    return `${first}${off.length ? ` ${off.join(" and ")} flew off.` : ""} The step is ${short(shown.lr, 3)}; 2/L is ${short(shown.limit, 3)}.`;
  }

  const time = lab.timeline({ show: (step) => shown && draw(step), told, state, seconds: (steps) => steps / 20 });

  function show(answer, newest = true, news = "") {
    const [same, last] = [shown?.relief === answer.relief, answer.racers[0].heights.length - 1];
    const at = shown ? last : Number(lab.given().at ?? last);
    shown = newest || !moved ? answer : { ...answer, start: shown.start };
    if (!same) paint();
    time.stop();
    time.renew(last, at);
    if (newest) time.rest(news);
  }

  const ask = lab.asker(show);
  const change = (words = "") => ask(state(), words);

  part("picture").replaceChildren(element("div", { className: "race-board" }, canvas, plane.svg));
  part("racers").addEventListener("change", ({ target }) => {
    if (!chosen()) target.checked = true; // one must run
    else if (lab.may()) change();
  });
  const enter = (names) => boxes.forEach((box) => (box.checked = names.split(",").includes(box.value)));
  lab.controls((name) => {
    if (!name) enter(START);
    if (!name || name === "place") moved = null;
    change();
  });
  const { x, y, racers } = lab.given();
  if (x !== undefined && y !== undefined) moved = [Number(x), Number(y)];
  enter(racers ?? START);
  if (lab.first.racers) show(lab.first);
  else if (lab.live) ask(state());
})();
