// The width lab: every change draws and trains another network on the server.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;
  let power = 5;

  lab.begin(({ width, drift, apart, missed, kurtosis }) => {
    power = Math.log2(width);
    part("width").textContent = width;
    part("drift").textContent = `${short(100 * drift, 2)} %`;
    part("apart").textContent = short(apart, 2);
    const data = missed < 0.1 ? "The prediction is right at the data."
      : `At the data the prediction is wrong by up to ${short(missed, 2)}.`;
    say(`${width} units: training moves the kernel by ${short(100 * drift, 2)} %. ${data} ` +
      `The draws' excess kurtosis is ${short(kurtosis, 2)}; a Gaussian's is 0.`);
  });

  lab.press({
    wider: () => {
      if (!lab.may()) return;
      lab.set("power", Math.min(10, power + 1));
      document.getElementById("power").dispatchEvent(new Event("input", { bubbles: true }));
    },
  });
})();
