// The phase space lab: every move of a slider integrates both orbits anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;
  const shown = (value) => (value === null || value > 1e6 ? "∞" : short(value, 3));

  lab.begin(({ leapfrog, worst, euler, variance, measured }) => {
    part("leapfrog").textContent = shown(leapfrog);
    part("euler").textContent = shown(euler);
    part("variance").textContent = variance === null ? "∞" : short(variance, 4);
    const jumps = worst === null || worst > 1e3
      ? "The leapfrog flies away, too."
      : `The leapfrog's energy is never more than ${short(worst, 3)} times the first.`;
    const settles = variance === null
      ? "With this step Langevin dynamics settles nowhere."
      : `Langevin dynamics settles at the variance ${short(variance, 4)}; its chains have ${shown(measured)}, the target 1.`;
    const free = "Without friction Langevin dynamics has no noise either, and settles nowhere.";
    const noise = Number(lab.get("friction")) === 0 ? free : settles;
    say(`${jumps} Euler's has grown to ${shown(euler)}. ${noise}`);
  });
})();
