// The oversmoothing lab: the nodes on the graph and by their features; the server adds layers.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, element, make, count } = lab;
  const [SIZE, DEEPEST, PAUSE] = [6.5, 64, 130];
  const percent = (value) => `${value < 0.001 ? "less than 0.1" : short(100 * value, 2)} %`;

  // --- Two pictures of the same nodes: discs and squares are the groups as they are ---

  const pictures = {
    graph: make("svg", { viewBox: "-110 -110 220 220", class: "nodes fading", role: "img" }),
    plane: make("svg", { viewBox: "-14 -210 224 224", class: "nodes fading", role: "img" }),
  };
  let marks = []; // for each node its mark on the graph and the one in the plane
  let drawn = ""; // whose nodes those are

  function put(mark, [x, y]) {
    if (mark.tagName === "circle") return mark.setAttribute("cx", x), mark.setAttribute("cy", y);
    mark.setAttribute("x", x - 0.88 * SIZE);
    mark.setAttribute("y", y - 0.88 * SIZE);
  }

  function build({ places, edges, y, known }) {
    const at = places.map(([x, y]) => [100 * x, -100 * y]);
    const lines = edges.map(([a, b]) => make("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1] }));
    marks = at.map(([x, up], k) => ["graph", "plane"].map((name) => lab.dot(y[k] === 0, [x, -up], SIZE, {}, "")));
    const grounds = at.map(([x, up], k) => lab.dot(y[k] === 0, [x, -up], SIZE, { class: "ground" }, ""));
    const around = known.map((k) => make("circle", { class: "known", cx: at[k][0], cy: at[k][1], r: SIZE + 4 }));
    pictures.graph.replaceChildren(...lines, ...around, ...grounds, ...marks.map(([mark]) => mark));
    const frame = make("path", { class: "frame", d: "M0 -206V0H206M0 0L200 -200" });
    pictures.plane.replaceChildren(frame, make("g", { class: "ends" }), ...marks.map(([, mark]) => mark));
  }

  function paint(told) {
    const { names, groups, y, shares, x, end } = told;
    if (drawn !== names.join()) build(told);
    drawn = names.join();
    shares.forEach((share, k) => {
      const heard = share > 0 ? 0 : 1;
      const wrong = share !== 0 && heard !== y[k];
      const kind = `${share > 0 ? "more" : share < 0 ? "less" : ""} ${wrong ? "wrong" : ""}`.trim();
      const words = share === 0 ? "heard of neither" : `heard more of ${groups[heard]}${wrong ? `; right would be ${groups[y[k]]}` : ""}`;
      for (const mark of marks[k]) {
        mark.setAttribute("class", kind);
        mark.setAttribute("fill-opacity", (share === 0 ? 0 : 0.12 + 0.88 * Math.abs(share)).toFixed(2));
        mark.firstChild.textContent = `${names[k]}: ${words}`;
      }
      put(marks[k][1], [200 * x[k][0], -200 * x[k][1]]);
    });
    const places = new Map(end.map(([a, b]) => [`${a},${b}`, [200 * a, -200 * b]])); // many end in one place
    const rings = [...places.values()].map(([cx, cy]) => make("circle", { cx, cy, r: SIZE + 2 }));
    pictures.plane.querySelector(".ends").replaceChildren(...rings);
  }

  // --- Words ---

  function describe({ names, groups, shares, right, best, left, bound, second }) {
    const depth = Number(lab.get("depth"));
    part("right").textContent = `${right} of ${names.length}`;
    part("left").textContent = `${percent(left)} of the differences is left; the eigenvalue ${short(second, 3)} allows ${percent(bound)}`;
    const silent = shares.filter((share) => share === 0).length;
    const one = [0, 1].find((group) => shares.every((share) => (group ? share < 0 : share > 0)));
    const after = `After ${count(depth, "layer")}`;
    pictures.graph.setAttribute("aria-label", `${after}: the graph, its nodes in the colour of what they heard more of`);
    pictures.plane.setAttribute("aria-label", `${after}: each node by what it heard of ${groups[0]}, across, and of ${groups[1]}, upwards`);
    if (depth === 0) return "Nobody has heard of anything yet, but for the two that are known.";
    if (one !== undefined) return `${after} all nodes hear more of ${groups[one]}: nobody is told apart any more.`;
    if (silent) return `${after} ${count(silent, "node")} ${silent === 1 ? "has" : "have"} heard of neither: too far away.`;
    const most = `the most at any depth is ${best[0]}, with ${count(best[1], "layer")}`;
    return `${after} ${right} are told right; ${right === best[0] ? "no depth tells more" : most}.`;
  }

  // --- Play: one layer after the other, faster where less happens ---

  const button = part("act=play");
  let timer = 0;

  function go(depth) {
    lab.set("depth", depth);
    lab.fields.depth.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
    button.textContent = "Play";
  }

  function step() {
    const depth = Number(lab.get("depth"));
    if (depth >= DEEPEST) return stop();
    go(Math.min(DEEPEST, depth + (depth < 16 ? 1 : depth < 32 ? 2 : 4)));
    timer = setTimeout(step, PAUSE);
  }

  function play() {
    if (timer) return stop();
    if (!lab.may()) return;
    if (lab.still.matches) return go(DEEPEST); // at once, for readers who want no motion
    if (Number(lab.get("depth")) === DEEPEST) go(0);
    button.textContent = "Pause";
    timer = setTimeout(step, PAUSE);
  }

  // --- To begin with ---

  const caption = element("figcaption", {});
  part("picture").classList.add("graphs");
  const framed = (svg, text) => element("figure", {}, svg, text);
  part("picture").replaceChildren(framed(pictures.graph, element("figcaption", {}, "who is joined to whom")), framed(pictures.plane, caption));
  lab.begin((told) => {
    paint(told);
    caption.textContent = `heard of ${told.groups[0]} (→) and of ${told.groups[1]} (↑)`;
    lab.fields.alpha.disabled = lab.get("skip") !== "initial"; // nothing else has a share of the start
    say(describe(told));
  });
  lab.press({ play });
  lab.root.addEventListener("pointerdown", ({ target }) => timer && target !== button && stop());
})();
