// The approximation lab: the heights of a function are drawn, and the server fits the network anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short } = lab;
  const [COUNT, START] = [9, "0.8,0.6,0.4,0.2,0,0.2,0.4,0.6,0.8"];
  let heights = [];
  let chosen = 4;

  const read = (text) => text.split(",").map(Number);
  const tidy = (value) => Number(Math.max(-1, Math.min(1, value)).toFixed(2)) + 0;
  const across = (index) => (2 * index) / (COUNT - 1) - 1;
  const nearest = (x) => Math.max(0, Math.min(COUNT - 1, Math.round(((x + 1) * (COUNT - 1)) / 2)));
  const places = () => heights.map((y, index) => [across(index), y]);
  const place = (index) => `f(${short(across(index), 2)}) = ${short(heights[index], 2)}`;
  const state = () => ({ ...lab.state(), ...(heights.join() === START ? {} : { heights: heights.join() }) });
  const path = (points) => points.map(([x, y]) => `${x} ${-y}`).join("L");

  // --- The plane ---

  const plane = lab.plane({
    class: "plane",
    "aria-roledescription": "drawing of a function",
    "aria-label": "A function and a network fitted to it. Left and right choose a point of the function, up and down move it.",
    reach: 1,
    grip: 0.1,
    layers: ["ground", "curves", "marks"],
    places,
    grab: choose,
    drag(index, x, y) {
      choose(nearest(x));
      put(y);
    },
    drop: (index, x, y, moved) => (moved ? change(`${place(chosen)}.`) : say(`Chosen: ${place(chosen)}.`)),
    tap(x, y) {
      choose(nearest(x));
      put(y, true);
    },
    key(key, way, finely) {
      if (!way) return false;
      if (way[0]) {
        choose(Math.max(0, Math.min(COUNT - 1, chosen + way[0])));
        return say(`Point ${chosen + 1} of ${COUNT}: ${place(chosen)}.`);
      }
      put(heights[chosen] + way[1] * (finely ? 0.01 : 0.1), true);
    },
  });

  function draw() {
    const look = (index) => ({ class: `plus${index === chosen ? " chosen" : ""}`, "data-index": index });
    const dots = places().map((p, k) => lab.dot(true, p, k === chosen ? 0.05 : 0.04, look(k), place(k)));
    plane.groups.marks.replaceChildren(...dots);
  }

  function choose(index) {
    chosen = index;
    draw();
  }

  function put(y, told = false) {
    if (!lab.may()) return;
    heights[chosen] = tidy(y);
    change(told ? `${place(chosen)}.` : "");
  }

  // --- What came of it ---

  function show({ curve, lower, upper, words }, newest = true, news = "") {
    const [above, below] = [upper, -upper].map((by) => places().map(([x, y]) => [x, y + by]));
    const clip = (points) => points.map(([x, y]) => [x, Math.max(-1.05, Math.min(1.05, y))]);
    plane.groups.ground.replaceChildren(make("path", { class: "plus-side", d: `M${path(clip([...above, ...below.reverse()]))}z` }));
    const target = make("path", { class: "old-line", d: `M${path(places())}` });
    plane.groups.curves.replaceChildren(target, make("path", { class: "line", d: `M${path(clip(curve))}` }));
    part("distance").textContent = short(lower, 2);
    part("between").textContent = `at most ${short(upper, 3)}, by the values at many points and the steepest slope`;
    part("floor").textContent = words;
    draw();
    if (!newest) return;
    say(`${news} The network stays within ${short(upper, 2)} of the function.`.trim());
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words = "") {
    draw();
    ask(state(), words);
  }

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  lab.controls((name) => {
    if (!name) [heights, chosen] = [read(START), 4];
    change();
  });
  heights = read(lab.given().heights ?? START);
  draw();
  if (lab.first.curve) show(lab.first);
  else if (lab.live) ask(state());
})();
