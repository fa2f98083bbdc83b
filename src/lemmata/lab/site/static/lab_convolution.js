// The convolution lab: a kernel to draw on, and the server's four pictures around it.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, element, make } = lab;
  const [SIDE, CELL] = [5, 40]; // numbers to a side, and units to a number
  let taps = Array(SIDE * SIDE).fill(0);
  let own = false; // whether the reader drew the kernel
  let brush = null; // while drawing: the number it leaves
  let cursor = 12;

  const sign = (value) => String(value).replace("-", "−");
  const state = () => ({ ...lab.state(), ...(own ? { cells: taps.join(",") } : {}) });
  const cell = ([x, y]) => (Math.min(x, y) >= 0 && Math.max(x, y) < SIDE ? Math.floor(y) * SIDE + Math.floor(x) : -1);
  const at = (place) => cell(place.map((c) => c / CELL));
  const row = (k) => Math.floor(k / SIDE);
  const named = (k) => `Row ${row(k) + 1}, column ${(k % SIDE) + 1}`;
  const next = (value) => (value === 0 ? 1 : value > 0 ? -1 : 0);

  // --- Pictures: a byte for each pixel ---

  const canvases = {};

  function photo(name, words) {
    canvases[name] = element("canvas", { role: "img", ariaLabel: words });
    return element("figure", {}, canvases[name], element("figcaption", {}, words));
  }

  function paint(canvas, text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const side = Math.sqrt(bytes.length);
    Object.assign(canvas, { width: side, height: side });
    const image = new ImageData(side, side);
    bytes.forEach((grey, k) => image.data.set([grey, grey, grey, 255], 4 * k));
    canvas.getContext("2d", { willReadFrequently: true }).putImageData(image, 0, 0); // a small picture needs no GPU
  }

  // --- Kernels: as they are drawn, and turned ---

  const words = "The kernel. Arrow keys move; Space, plus and minus change a number.";
  const kernel = lab.touched({ class: "taps", "aria-roledescription": "kernel", "aria-label": words }, {
    down(place) {
      if (at(place) < 0 || !lab.may()) return false;
      brush = next(taps[at(place)]);
      put(at(place), brush);
    },
    move: (places) => places.map(at).forEach((k) => k >= 0 && taps[k] !== brush && put(k, brush)),
    up: () => (brush = null),
    key(key, way) {
      if (way) {
        const moved = cell([(cursor % SIDE) + way[0], row(cursor) - way[1]]);
        if (moved >= 0) cursor = moved;
        say(`${named(cursor)}: ${sign(taps[cursor])}.`);
        draw();
      } else if (![" ", "+", "-"].includes(key)) return false;
      else if (lab.may()) {
        const counted = Math.max(-9, Math.min(9, taps[cursor] + Number(`${key}1`)));
        put(cursor, key === " " ? next(taps[cursor]) : counted);
      }
    },
  });
  const turned = make("svg", { class: "taps", role: "img" });
  for (const event of ["focus", "blur"]) kernel.addEventListener(event, draw);

  function grid(svg, numbers, focus) {
    const most = Math.max(1, ...numbers.map(Math.abs));
    const box = (k, attributes) => {
      const [x, y] = [CELL * (k % SIDE) + 1, CELL * row(k) + 1];
      return make("rect", { x, y, width: CELL - 2, height: CELL - 2, rx: 4, ...attributes });
    };
    const cells = numbers.flatMap((value, k) => {
      const shade = { class: value > 0 ? "more" : "less", "fill-opacity": (0.15 + (0.6 * Math.abs(value)) / most).toFixed(2) };
      const text = make("text", { x: CELL * ((k % SIDE) + 0.5), y: CELL * (row(k) + 0.64) }, sign(value));
      return [box(k, value ? shade : {}), text];
    });
    svg.setAttribute("viewBox", `0 0 ${SIDE * CELL} ${SIDE * CELL}`);
    svg.replaceChildren(...cells, ...(focus ? [box(cursor, { class: "cursor" })] : []));
  }

  function draw() {
    grid(kernel, taps, kernel.matches(":focus-visible"));
    const back = taps.toReversed();
    grid(turned, back, false);
    turned.setAttribute("aria-label", `The kernel turned by half a turn: ${back.map(sign).join(", ")}`);
  }

  function put(k, value) {
    taps[k] = value;
    change(`${named(k)} is ${sign(value)}.`, true);
  }

  // --- Questions and answers ---

  function show(told, newest = true, news = "") {
    for (const [name, text] of Object.entries(told.pictures)) paint(canvases[name], text);
    part("size").textContent = `${told.size} × ${told.size}`;
    const [s, p, d] = ["stride", "padding", "dilation"].map(lab.get);
    part("room").textContent = `⌊(64 + 2·${p} − ${d}·4 − 1) / ${s}⌋ + 1 = ${told.size}`;
    if (!newest) return;
    if (brush === null) taps = told.taps;
    draw();
    const apart = `The two are up to ${short(told.difference, 2)} apart.`;
    const same = told.symmetric ? "The kernel is the same turned around: so are the pictures." : apart;
    say(`${news} ${same}${told.signed ? " Grey is zero." : ""}`.trim());
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words, drawn) {
    own = drawn;
    draw();
    ask(state(), words);
  }

  lab.controls((name) => change("", own && name !== "kernel" && name !== ""));
  lab.press({
    turn: () => lab.may() && ((taps = taps.toReversed()), change("The kernel is turned by half a turn.", true)),
    clear: () => lab.may() && ((taps = taps.map(() => 0)), change("The kernel is empty.", true)),
  });

  // --- To begin with ---

  part("picture").classList.add("convolved");
  part("picture").replaceChildren(
    photo("input", "picture"),
    element("figure", {}, kernel, element("figcaption", {}, "kernel: draw here")),
    element("figure", {}, turned, element("figcaption", {}, "turned")),
    photo("difference", "their difference"),
    photo("correlation", "correlation"),
    photo("convolution", "convolution"),
  );
  const { cells } = lab.given();
  if (cells) [taps, own] = [cells.split(",").map(Number), true];
  if (lab.first.taps) show(lab.first);
  else if (lab.live) ask(state());
})();
