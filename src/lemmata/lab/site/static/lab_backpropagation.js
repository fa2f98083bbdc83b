// The backpropagation lab: two sweeps through a small network, played forwards and backwards, and one weight looked at.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short, element } = lab;
  const LAST = 11;
  const DIGITS = "₁₂₃";
  let run = null; // the server's answer
  let chosen = 0; // the weight that is looked at

  const number = (value) => (Math.abs(value) < 5e-4 ? "0" : short(value, 3));
  const fitted = (value) => (Math.abs(value) < 1000 ? value.toFixed(Math.abs(value) < 10 ? 3 : 1) : value.toExponential(0)).replace("-", "−");
  const state = () => ({ ...lab.state(), ...(chosen ? { weight: String(chosen) } : {}) });
  const unit = (layer, index) => (layer === 5 ? "y" : layer ? `${run.layers[layer].name},${index + 1}` : `x${DIGITS[index]}`);

  // --- The graph: x, pairs of z and a, y; a layer has a column, a unit a row in it ---

  const COLUMN = [42, 168, 234, 344, 410, 492];
  const [WIDE, HIGH] = [534, 400];
  const row = (layer, index) => (HIGH * (index + 0.5)) / run.layers[layer].values.length;
  const place = (layer, index) => [COLUMN[layer], row(layer, index)];

  const svg = lab.touched(
    {
      viewBox: `0 0 ${WIDE} ${HIGH}`,
      class: "chain",
      "aria-roledescription": "network",
      "aria-label": "A network of two inputs, three and two units, and one output. Left and right step, up and down choose a weight, Space plays.",
    },
    {
      down: (at, event) => (choose(Number(event.target.closest("[data-weight]")?.dataset.weight ?? -1)), true),
      move() {},
      up() {},
      key(key, way) {
        if (key === " ") time.play();
        else if (way?.[0]) time.go(time.at() + way[0]);
        else if (way) choose((chosen - way[1] + run.weights.length) % run.weights.length);
        else return false;
      },
    },
  );

  // An edge is as wide as its weight is large; a bias is a short edge from below.
  function edge(weight, index, at) {
    const [x, y] = place(weight.layer + 1, weight.to);
    const [u, v] = weight.from === null ? [x - 30, y + 52] : place(weight.layer, weight.from);
    const known = at >= LAST - weight.layer ? " known" : "";
    const look = `edge ${weight.value < 0 ? "minus" : "plus"}${known}${index === chosen ? " chosen" : ""}`;
    const line = { d: `M${u} ${v}L${x} ${y}` };
    const title = make("title", {}, `${named(weight)} = ${number(weight.value)}`);
    const drawn = make("path", { ...line, class: look, "stroke-width": 1 + 3 * Math.min(2, Math.abs(weight.value)) });
    return make("g", { "data-weight": index }, make("path", { ...line, class: "grip" }), drawn, title);
  }

  function node(layer, index, at) {
    const [x, y] = place(layer, index);
    const { values, deltas } = run.layers[layer];
    const now = at === layer || at === LAST - layer;
    const text = (dy, look, words) => make("text", { x, y: y + dy, class: look }, words);
    const shown = [text(-26, "name", unit(layer, index))];
    if (at >= layer) shown.push(text(-3, "value", fitted(values[index])));
    if (at >= LAST - layer) shown.push(text(17, "delta", `δ ${fitted(deltas[index])}`));
    if (layer === 5) shown.push(text(44, "name", `t = ${number(run.target)}`));
    return make("g", {}, make("rect", { x: x - 33, y: y - 21, width: 66, height: 45, rx: 6, class: now ? "now" : "" }), ...shown);
  }

  function draw(at) {
    const edges = run.weights.map((weight, index) => edge(weight, index, at));
    edges.push(...edges.splice(chosen, 1)); // on top of the others
    const nodes = run.layers.flatMap(({ values }, layer) => values.map((_, index) => node(layer, index, at)));
    svg.replaceChildren(...edges, ...nodes);
  }

  // --- The weight that is looked at ---

  function named({ layer, to, from }) {
    const which = DIGITS[layer / 2];
    return from === null ? `b${which},${to + 1}` : `W${which},${to + 1}${from + 1}`;
  }

  function look(at) {
    const weight = run.weights[chosen];
    const [delta, into] = [run.layers[weight.layer + 1].deltas[weight.to], unit(weight.layer + 1, weight.to)];
    const due = LAST - weight.layer;
    const head = `${named(weight)} = ${number(weight.value)}: `;
    if (at < due) return `${head}its gradient comes in step ${due}.`;
    if (weight.from === null) return `${head}gradient δ(${into}) = ${number(weight.gradient)}`;
    const [source, given] = [unit(weight.layer, weight.from), run.layers[weight.layer].values[weight.from]];
    return `${head}gradient δ(${into}) × ${source} = ${number(delta)} × ${number(given)} = ${number(weight.gradient)}`;
  }

  function choose(index) {
    if (index < 0) return;
    chosen = index;
    show(time.at());
    say(look(time.at()));
    lab.remember({ ...state(), ...(time.at() ? { at: time.at() } : {}) });
  }

  // --- Steps and answers ---

  const time = lab.timeline({ show, told: (at) => run.steps[at], state, seconds: (steps) => 0.7 * steps });

  function show(at) {
    draw(at);
    part("chosen").textContent = look(at);
    const off = run.off ? `differ by at most ${run.off.toExponential(0)}` : "are the same to the last bit";
    part("off").textContent = at === LAST ? `Autograd’s gradients ${off}.` : "";
  }

  function renew(answer, at, newest = true) {
    run = answer;
    part("loss").textContent = number(run.loss);
    const cell = (text) => element("td", {}, text);
    const line = ([way, cost]) => [element("th", { scope: "row" }, way), cell(cost.toLocaleString("en")), cell((cost / run.costs[0][1]).toFixed(1))];
    part("costs").replaceChildren(...run.costs.map((each) => element("tr", {}, ...line(each))));
    time.renew(LAST, at);
    if (newest) time.rest();
  }

  const ask = lab.asker((answer, newest) => renew(answer, time.at(), newest));
  lab.controls((name) => {
    time.stop();
    if (!name) chosen = 0;
    ask(state());
  });

  // --- To begin with ---

  part("picture").replaceChildren(svg);
  const { weight, at } = lab.given();
  chosen = Number(weight ?? 0);
  if (lab.first.layers) renew(lab.first, lab.first.at);
  else if (lab.live) lab.asker((answer) => renew(answer, answer.at))({ ...state(), ...(at ? { at } : {}) });
})();
