// The digit lab: an image whose pixels are turned over by hand, and the server's attacks on it.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, element, make } = lab;
  const SIDE = 8;
  const none = () => Array(SIDE * SIDE).fill(false);
  let turned = none(); // pixels that the reader turned over
  let grey = null; // the digit as it was answered last
  let cursor = 27;
  let held = false;

  const at = ([x, y]) => (Math.min(x, y) >= 0 && Math.max(x, y) < SIDE ? Math.floor(y) * SIDE + Math.floor(x) : -1);
  const state = () => ({ ...lab.state(), ...(turned.includes(true) ? { pixels: lab.pixels.pack(turned) } : {}) });
  const named = (k) => `Row ${Math.floor(k / SIDE) + 1}, column ${(k % SIDE) + 1}`;
  const percent = (share) => `${(100 * share).toFixed(share > 0.99 && share < 1 ? 1 : 0)}\u00a0%`;

  // --- Images ---

  const square = (k, properties) => make("rect", { x: (k % SIDE) + 0.04, y: Math.floor(k / SIDE) + 0.04, width: 0.92, height: 0.92, rx: 0.12, ...properties });

  function paint(svg, values, focus = false) {
    const cells = values.map((value, k) => {
      const cell = square(k);
      cell.style.opacity = (0.045 + 0.955 * value).toFixed(3);
      return cell;
    });
    svg.replaceChildren(...cells, ...(focus ? [square(cursor, { class: "cursor" })] : []));
  }

  function paintChange(svg, values) {
    const cell = (value, k) => square(k, value ? { class: value > 0 ? "more" : "less", "fill-opacity": Math.min(1, Math.abs(value)) } : {});
    svg.replaceChildren(...values.map(cell));
  }

  const viewBox = `-0.2 -0.2 ${SIDE + 0.4} ${SIDE + 0.4}`;
  const captions = {};

  function framed(svg, name, words) {
    captions[name] = element("figcaption", {}, words);
    return element("figure", {}, svg, captions[name]);
  }

  function image(kind, words) {
    const svg = make("svg", { class: kind, viewBox, role: "img", "aria-label": words });
    Object.assign(svg.style, { touchAction: "auto", cursor: "default" });
    return svg;
  }

  const words = "The digit. Arrow keys move, Space turns a pixel over.";
  const digit = lab.touched({ class: "pixels", viewBox, "aria-roledescription": "picture", "aria-label": words }, {
    down(place) {
      if (at(place) < 0 || !lab.may()) return false;
      held = true;
      turn(at(place));
    },
    move() {},
    up: () => (held = false),
    key(key, way) {
      if (way) {
        const moved = at([(cursor % SIDE) + way[0], Math.floor(cursor / SIDE) - way[1]]);
        if (moved >= 0) cursor = moved;
        if (grey) say(`${named(cursor)}: ${percent(grey[cursor])} ink.`);
        draw();
      } else if (key !== " ") return false;
      else if (lab.may()) turn(cursor);
    },
  });
  for (const event of ["focus", "blur"]) digit.addEventListener(event, draw);
  const images = {
    digit,
    pgd: image("pixels", "After projected gradients"),
    squares: image("pixels", "After random squares"),
    shown: image("pixels", "What the network is shown of the digit"),
  };
  const changes = { pgd: image("taps", "Change by projected gradients"), squares: image("taps", "Change by random squares") };

  function draw() {
    if (grey) paint(digit, grey, digit.matches(":focus-visible"));
  }

  // --- Questions and answers ---

  function show(told, newest = true, news = "") {
    grey = told.images.digit;
    draw();
    for (const name of ["pgd", "squares", "shown"]) paint(images[name], told.images[name]);
    for (const [name, values] of Object.entries(told.changes)) paintChange(changes[name], values);
    const answer = (name) => `read as ${told.read[name]}, ${percent(told.sure[name])}`;
    captions.pgd.textContent = `projected gradients: ${answer("pgd")}`;
    captions.squares.textContent = `random squares: ${answer("squares")}`;
    part("read").textContent = told.read.digit;
    part("sure").textContent = `with ${percent(told.sure.digit)}`;
    const { counts, flags } = told.examined;
    part("counts").textContent = counts;
    const signs = flags.length ? flags : ["No sign of sham robustness."];
    part("flags").replaceChildren(...signs.map((flag) => element("li", {}, flag)));
    if (!newest) return;
    if (!held) turned = told.pixels;
    say(`${news} ${told.said}`.trim());
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(fresh, words = "") {
    turned = fresh;
    ask(state(), words);
  }

  function turn(k) {
    cursor = k;
    change(turned.map((on, j) => (j === k ? !on : on)), `${named(k)} is turned over.`);
  }

  lab.controls((name) => change(name === "digit" || name === "" ? none() : turned));
  lab.press({ clear: () => lab.may() && change(none(), "The digit is as it was.") });

  // --- To begin with ---

  part("picture").classList.add("convolved");
  part("picture").replaceChildren(
    framed(digit, "digit", "the digit: click a pixel"),
    framed(images.pgd, "pgd", "projected gradients"),
    framed(images.squares, "squares", "random squares"),
    framed(images.shown, "shown", "what the network is shown"),
    framed(changes.pgd, "by_gradients", "their change, in parts of ε"),
    framed(changes.squares, "by_squares", "their change, in parts of ε"),
  );
  const { pixels } = lab.given();
  if (pixels) turned = lab.pixels.unpack(pixels);
  if (lab.first.images) show(lab.first);
  else if (lab.live) ask(state());
})();
