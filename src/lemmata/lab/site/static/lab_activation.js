// The activation lab: the server answers every move of the slider with another tangent.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;

  lab.begin(({ value, slope, steepest }) => {
    part("value").textContent = short(value, 3);
    part("slope").textContent = short(slope, 3);
    const passed = Math.abs(slope) < 0.0005 ? "Nothing of a gradient passes" : `${short(100 * slope, 2)} % of a gradient passes`;
    say(`${passed} here. The steepest slope anywhere is ${short(steepest, 3)}.`);
  });
})();
