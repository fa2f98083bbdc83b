// The lab of a VAE by hand: two sliders are q, and the server splits the evidence anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;
  let best = null; // the q with the largest bound among those that the server tried

  lab.begin((answer) => {
    best = answer.best;
    for (const name of ["evidence", "elbo", "gap"]) part(name).textContent = short(answer[name], 3);
    const split = `Reconstruction ${short(answer.reconstruction, 3)}, less a divergence of ${short(answer.kl, 3)} from the prior, is the bound.`;
    const left = answer.gap < 0.01 ? "q is the posterior, or all but: nothing is missed."
      : answer.gap < best.gap + 0.02 ? `No normal q misses less than about ${short(best.gap, 2)} nats.`
        : `${short(answer.gap, 3)} nats are missed; the best normal q misses ${short(Math.max(best.gap, 0), 2)}.`;
    say(`${split} ${left}`);
  });

  function put(values) {
    if (!lab.may()) return;
    for (const [name, value] of Object.entries(values)) lab.set(name, value);
    document.getElementById("mean").dispatchEvent(new Event("input", { bubbles: true }));
  }

  lab.press({
    best: () => best && put({ mean: best.mean, spread: best.spread }),
    prior: () => put({ mean: 0, spread: 1 }),
  });
})();
