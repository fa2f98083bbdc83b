// The filters lab: a digit is drawn and covered, and every map of a trained network is painted anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, element } = lab;
  const { unpack, pack } = lab.pixels;
  const LEVELS = 14; // what the largest value of a map is written as; changes are written around half of it
  let drawn; // the reader's own picture, if there is one
  let shown = null; // the server's answer

  const state = () => ({ ...lab.state(), ...(drawn ? { picture: drawn } : {}) });

  // --- Painting ---

  function colours() {
    const marker = element("span");
    lab.root.append(marker);
    const read = (name) => {
      marker.style.color = `var(${name})`; // resolves light-dark() for the canvas
      return getComputedStyle(marker).color;
    };
    const found = ["--ink", "--plus", "--minus"].map(read);
    marker.remove();
    return found;
  }

  // One hexadecimal digit a pixel: ink for values, two colours for what is above and below nothing.
  function paint(canvas, text, signed, [ink, above, below]) {
    const board = canvas.getContext("2d");
    board.clearRect(0, 0, canvas.width, canvas.height);
    [...text].forEach((digit, k) => {
      const level = parseInt(digit, 16) / LEVELS;
      const value = signed ? 2 * level - 1 : level;
      if (!value) return;
      board.globalAlpha = Math.abs(value);
      board.fillStyle = signed ? (value > 0 ? above : below) : ink;
      board.fillRect(k % canvas.width, Math.floor(k / canvas.width), 1, 1);
    });
  }

  function repaint() {
    if (!shown) return;
    const palette = colours();
    for (const [layer, maps] of Object.entries(shown.maps)) {
      maps.forEach((text, k) => paint(part(`feature="${layer}-${k}"`), text, shown.signed, palette));
    }
    part("weights").replaceChildren(...shown.weights.map((text) => {
      const canvas = element("canvas", { width: 5, height: 5 });
      paint(canvas, text, true, palette);
      return canvas;
    }));
  }

  document.addEventListener("lemmata:theme", repaint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  // --- The drawing: ink under the cover is not lost, only hidden ---

  let hidden = [];
  const picture = lab.pixels.canvas({
    label: "The drawing. Arrow keys move, Space turns cells over.",
    broad: 2,
    began: () => {},
    drawn: (bits) => redraw(bits.map((ink, k) => ink || (hidden[k] ?? false))),
    enter: () => {},
  });

  function redraw(bits, words = "Drawn.") {
    if (!lab.may()) return;
    drawn = pack(bits);
    change(words);
  }

  // --- What came of it ---

  function show(answer, newest = true, news = "") {
    shown = answer;
    repaint();
    part("looked").textContent = answer.looked;
    if (!newest) return; // an older picture would take away what was drawn since
    const [whole, left] = [unpack(answer.picture), unpack(answer.covered)];
    hidden = whole.map((ink, k) => ink && !left[k]);
    if (!picture.drawing()) picture.show(left, whole);
    say(`${news} ${answer.said}`.trim());
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words = "") {
    ask(state(), words);
  }

  function coverWorst() {
    if (!shown || !lab.may()) return;
    for (const [name, value] of Object.entries(shown.worst)) lab.set(name, value);
    change("Covered where it hurts most.");
  }

  lab.press({
    worst: coverWorst,
    clear: () => redraw(Array(256).fill(false), "Nothing is drawn."),
  });
  lab.controls((name) => {
    if (!name || name === "digit") drawn = undefined;
    change();
  });

  // --- To begin with ---

  part("picture").replaceChildren(picture.svg);
  drawn = lab.given().picture;
  if (lab.first.maps) show(lab.first);
  else if (lab.live) ask(state());
})();
