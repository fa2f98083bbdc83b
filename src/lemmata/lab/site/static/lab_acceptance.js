// The acceptance lab: every choice is another chain, walked anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;
  const percent = (value) => `${short(100 * value, 2)} %`;

  lab.begin(({ accepted, worth, off, exact, outside }) => {
    part("accepted").textContent = percent(accepted);
    part("worth").textContent = short(worth, 2);
    const right = "On five states the chain has its target, exactly.";
    const states = off ? `On five states the chain is off by up to ${exact}, exactly.` : right;
    const away = outside > 0.01 ? ` ${percent(outside)} of the draws have left the frame.` : "";
    const worthy = `a draw is worth ${short(worth, 2)} independent ones`;
    say(`${percent(accepted)} of the moves are accepted, and ${worthy}. ${states}${away}`);
  });
})();
