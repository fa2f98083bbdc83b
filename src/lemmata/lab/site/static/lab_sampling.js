// The sampling lab: every move of a slider samples the signal anew.
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

  lab.begin(({ off_by: error, alias, enough, images }) => {
    paint(images);
    part("error").textContent = short(error, 2);
    part("alias").textContent = short(alias, 3);
    const [rate, frequency] = [Number(lab.get("rate")), Number(lab.get("frequency"))];
    const waves = alias === 1 ? "1 wave" : `${short(alias, 3)} waves`;
    const words = enough
      ? `${short(rate / frequency, 3)} samples for each wave: no replica reaches the band.`
      : `Only ${short(rate / frequency, 3)} samples for each wave: ${frequency} waves look like ${waves}.`;
    say(`${words} The reconstruction is off by up to ${short(error, 2)}.`);
  });
})();
