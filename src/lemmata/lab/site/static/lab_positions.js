// The positions lab: every move of a slider is answered with the hands of the clocks, before and after the shift.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;

  lab.begin(({ missed, product, length }) => {
    part("product").textContent = short(product, 3);
    part("length").textContent = short(length, 3);
    say(missed < 1e-6 ? "A rotation brings every pair to its place after the shift." : `Rotations miss the shifted encoding by ${short(missed, 3)}.`);
  });
})();
