// Pictures of black and white pixels: as text, four a hexadecimal digit; small; and large, to be drawn on.
"use strict";

((lab) => {
  const { make } = lab;
  const unpack = (text) => [...text].flatMap((digit) => [8, 4, 2, 1].map((bit) => Boolean(parseInt(digit, 16) & bit)));
  const pack = (ink) => ink.map(Number).join("").replace(/.{4}/g, (four) => parseInt(four, 2).toString(16));

  function thumbnail(text) {
    const ink = unpack(text);
    const side = Math.sqrt(ink.length);
    const spots = ink.map((on, k) => (on ? `M${k % side} ${Math.floor(k / side)}h1v1h-1z` : "")).join("");
    return make("svg", { viewBox: `-0.5 -0.5 ${side + 1} ${side + 1}`, "aria-hidden": "true" }, make("path", { d: spots }));
  }

  // A square of pixels. `show(bits, wanted)` paints it, in another colour where it is not as wanted; `began()` says
  // whether the reader may draw, `drawn(bits)` has what came of it; `enter()` is the key of that name. A `broad` pen inks
  // so many pixels across.
  function canvas({ label, began, drawn, enter, broad = 1 }) {
    let [bits, wanted, cells, side] = [[], null, [], 0];
    let cursor = [0, 0];
    let brush = null; // while drawing: the ink it leaves
    const at = ([x, y]) => (Math.min(x, y) >= 0 && Math.max(x, y) < side ? Math.floor(y) * side + Math.floor(x) : -1);

    function ink(k) {
      const reached = k < 0 ? [] : bits.map((_, j) => j).filter((j) => {
        const [right, down] = [(j % side) - (k % side), Math.floor(j / side) - Math.floor(k / side)];
        return Math.min(right, down) >= 0 && Math.max(right, down) < broad;
      });
      if (reached.every((j) => bits[j] === brush)) return;
      for (const j of reached) bits[j] = brush;
      wanted = null;
      paint();
    }

    function end() {
      brush = null;
      drawn(bits);
    }

    const svg = lab.touched({ class: "pixels", "aria-roledescription": "picture", "aria-label": label }, {
      down(place) {
        if (at(place) < 0 || !lab.may()) return false;
        began();
        brush = !bits[at(place)];
        ink(at(place));
      },
      move: (places) => places.forEach((place) => ink(at(place))),
      up: end,
      key(key, way) {
        const here = cursor[1] * side + cursor[0];
        if (way) {
          cursor = [cursor[0] + way[0], cursor[1] - way[1]].map((c) => Math.max(0, Math.min(side - 1, c)));
          lab.say(`Row ${cursor[1] + 1}, column ${cursor[0] + 1}: ${bits[cursor[1] * side + cursor[0]] ? "ink" : "paper"}.`);
        } else if (key === "Enter") enter();
        else if (key !== " ") return false;
        else if (lab.may()) {
          brush = !bits[here];
          ink(here);
          end();
        }
        drawCursor();
      },
    });
    for (const event of ["focus", "blur"]) svg.addEventListener(event, drawCursor);

    function drawCursor() {
      svg.querySelector(".cursor")?.remove();
      if (!svg.matches(":focus-visible")) return;
      svg.append(make("rect", { class: "cursor", x: cursor[0] + 0.02, y: cursor[1] + 0.02, width: 0.96, height: 0.96, rx: 0.12 }));
    }

    function lay() {
      side = Math.sqrt(bits.length);
      const cell = (k) => make("rect", { x: (k % side) + 0.04, y: Math.floor(k / side) + 0.04, width: 0.92, height: 0.92, rx: 0.12 });
      cells = bits.map((_, k) => cell(k));
      svg.setAttribute("viewBox", `-0.3 -0.3 ${side + 0.6} ${side + 0.6}`);
      svg.replaceChildren(...cells);
      cursor = [side >> 1, side >> 1];
    }

    function paint() {
      if (cells.length !== bits.length) lay();
      cells.forEach((cell, k) => {
        cell.classList.toggle("ink", bits[k]);
        cell.classList.toggle("turned", wanted !== null && bits[k] !== wanted[k]);
      });
    }

    function show(ink, aim) {
      [bits, wanted] = [ink, aim];
      paint();
    }

    return { svg, show, bits: () => bits, drawing: () => brush !== null };
  }

  lab.pixels = { unpack, pack, thumbnail, canvas };
})(window.lemmataLab);
