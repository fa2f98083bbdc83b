// The Weisfeiler-Lehman lab: two graphs in their colours; the server refines them.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, element, make, count } = lab;
  const SIDES = ["left", "right"];
  const AGGREGATES = { sum: "sums (GIN)", mean: "means", max: "maxima" };
  const letter = (colour) => String.fromCharCode(65 + colour);
  const letters = (colours) => (colours.length ? colours.map(letter).join(" ") : "none");
  let shown = null;
  let chosen = null; // [side, node] that the reader looks at

  // --- The graphs ---

  const captions = SIDES.map(() => element("figcaption", {}));
  const pictures = SIDES.map((side, s) =>
    lab.touched({ viewBox: "-120 -120 240 240", class: "nodes coloured", "aria-roledescription": "graph", "aria-label": side }, {
      down: ([x, y]) => choose(s, nearest(s, x, y)),
      move: () => {},
      up: () => {},
      key(name, way) {
        if (name === "Escape" && chosen) return choose(s, -1);
        if (!way || !shown) return false;
        const nodes = shown.sides[s].places.length;
        const from = chosen?.[0] === s ? chosen[1] : way[0] + way[1] > 0 ? -1 : nodes;
        choose(s, (from + way[0] + way[1] + nodes) % nodes);
      },
    }),
  );
  const place = ([x, y]) => [100 * x, -100 * y];

  function nearest(s, x, y) {
    const far = shown.sides[s].places.map(place).map(([u, v]) => Math.hypot(u - x, v - y));
    const node = far.indexOf(Math.min(...far));
    return far[node] < 24 ? node : -1;
  }

  const first = (s) => (s ? shown.sides[0].places.length : 0); // where the nodes of a side begin among all
  const colour = (s, node) => shown.colours[first(s) + node];

  function choose(s, node) {
    if (!shown) return;
    chosen = node < 0 ? null : [s, node];
    draw();
    say(node < 0 ? outcome() : heard(s, node));
  }

  function heard(s, node) {
    const now = colour(s, node);
    const [was, neighbours] = shown.kinds[now];
    const begun = `Node ${node + 1} on the ${SIDES[s]} is ${letter(now)}`;
    return shown.before ? `${begun}: it was ${letter(was)} and its neighbours were ${letters(neighbours)}.` : `${begun}. It has heard nothing yet.`;
  }

  function draw() {
    shown.sides.forEach(({ name, places, edges }, s) => {
      const at = places.map(place);
      const mine = chosen?.[0] === s ? chosen[1] : -1;
      const near = edges.flatMap(([a, b]) => (a === mine ? [b] : b === mine ? [a] : []));
      const lines = edges.map(([a, b]) =>
        make("line", { x1: at[a][0], y1: at[a][1], x2: at[b][0], y2: at[b][1], class: a === mine || b === mine ? "heard" : "" }),
      );
      const nodes = at.map(([x, y], node) => {
        const now = colour(s, node);
        const alike = chosen && now === colour(...chosen) ? " alike" : "";
        const kind = node === mine ? " chosen" : near.includes(node) ? " near" : "";
        const disc = make("circle", { cx: x, cy: y, r: 14, class: `hue${now % 7}${now > 6 ? " late" : ""}${alike}${kind}` });
        return make("g", {}, make("title", {}, `node ${node + 1}: ${letter(now)}`), disc, make("text", { x, y: y + 5 }, letter(now)));
      });
      captions[s].textContent = name;
      const words = places.map((_, node) => letter(colour(s, node))).join(" ");
      pictures[s].setAttribute("aria-label", `On the ${SIDES[s]}, ${name}, its nodes coloured ${words}. Arrow keys go from node to node.`);
      pictures[s].replaceChildren(...lines, ...nodes);
    });
  }

  // --- Tables ---

  const cell = (text) => element("td", {}, text);
  const chip = (colour) => element("span", { className: `wl-chip hue${colour % 7}${colour > 6 ? " late" : ""}` }, letter(colour));

  function tables({ kinds, counts, networks, before }) {
    const rows = kinds.map(([was, neighbours], now) => {
      const [left, right] = counts[now];
      const seen = before ? [chip(was), letters(neighbours)] : ["–", "–"];
      const row = element("tr", { className: left === right ? "" : "apart" }, element("th", { scope: "row" }, chip(now)));
      row.append(...[...seen, left, right].map(cell));
      return row;
    });
    part("kinds").replaceChildren(...rows);
    const says = networks.map(([reduce, left, right, told]) => {
      const row = element("tr", { className: told ? "right" : "" }, element("th", { scope: "row" }, AGGREGATES[reduce]));
      row.append(...[left, right].map((value) => cell(short(value, 4))), cell(told ? "yes" : "no"));
      return row;
    });
    part("networks").replaceChildren(...says);
  }

  // --- Words ---

  function outcome() {
    const { counts, parted, stable, truth } = shown;
    const rounds = Number(lab.get("rounds"));
    const marks = lab.get("start") === "marked" ? ", mark onto mark" : "";
    const now = counts.findIndex(([left, right]) => left !== right);
    if (now >= 0) {
      const [left, right] = counts[now];
      const since = parted < rounds ? ` The colours part after ${count(parted, "round")}.` : "";
      const proof = `nothing lays one graph onto the other${marks}. That is a proof.${since}`;
      return `${letter(now)} comes ${count(left, "time")} on the left and ${right} on the right: ${proof}`;
    }
    if (rounds < stable) return "Each colour comes equally often on both sides so far. Go on.";
    const still = stable ? `After ${count(stable, "round")} nothing splits any more` : "Nothing ever splits";
    return `${still}, and each colour comes equally often. That proves nothing. In truth ${truth}.`;
  }

  function verdict() {
    if (shown.counts.some(([left, right]) => left !== right)) return "told apart";
    return Number(lab.get("rounds")) < shown.stable ? "not told apart yet" : "not told apart";
  }

  // --- To begin with ---

  part("picture").classList.add("graphs");
  part("picture").replaceChildren(...pictures.map((svg, s) => element("figure", {}, svg, captions[s])));
  lab.begin((told) => {
    if (shown && shown.truth + shown.sides[0].name !== told.truth + told.sides[0].name) chosen = null; // other graphs
    shown = told;
    draw();
    tables(told);
    part("verdict").textContent = verdict();
    say(chosen ? heard(...chosen) : outcome());
  });
})();
