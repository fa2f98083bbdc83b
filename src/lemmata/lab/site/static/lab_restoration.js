// The restoration lab: every move asks the server for another blurred and another restored photograph.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;
  // A byte for each pixel, as the server packs them.
  function paint(images) {
    images.forEach((text, k) => {
      const canvas = part(`canvas="${k}"`);
      const board = canvas.getContext("2d");
      const pixels = board.createImageData(canvas.width, canvas.height);
      [...atob(text)].forEach((letter, at) => {
        pixels.data.fill(letter.charCodeAt(0), 4 * at, 4 * at + 3);
        pixels.data[4 * at + 3] = 255;
      });
      board.putImageData(pixels, 0, 0);
    });
  }

  let best = null; // the power of ten of the best balance, as far as the server looked

  lab.begin(({ before, after, best: power, highest, images }) => {
    paint(images);
    best = power;
    part("before").textContent = short(before, 3);
    part("after").textContent = short(after, 3);
    const gain = after - before;
    const amount = `${short(Math.abs(gain), 2)} decibels ${gain > 0 ? "nearer to" : "farther from"}`;
    const words = Math.abs(gain) < 0.05 ? "as near to" : amount;
    say(`The restored image is ${words} the photograph ${words === amount ? "than" : "as"} the blurred one. ` +
      `The best balance near here gives ${short(highest, 3)} dB.`);
  });

  lab.press({
    best: () => {
      if (best === null || !lab.may()) return;
      lab.set("power", best);
      document.getElementById("power").dispatchEvent(new Event("input", { bubbles: true }));
    },
  });
})();
