// The double descent lab: every move of a slider fits the data anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, count } = lab;

  lab.begin(({ expected, risk, norm, interpolates }) => {
    part("expected").textContent = expected === null ? "∞" : short(expected, 3);
    part("risk").textContent = short(risk, 3);
    const [p, n, ridge] = [lab.get("p"), lab.get("n"), lab.get("ridge")].map((value) => (isNaN(value) ? value : Number(value)));
    const away = p - n;
    const side = `${count(Math.abs(away), "parameter")} ${away < 0 ? "below" : "beyond"} the threshold.`;
    const where = Math.abs(away) <= 1 ? "At the interpolation threshold." : side;
    const misses = ridge === "none" ? " The fit misses examples" : " The ridge keeps the fit from going through every example";
    const passes = interpolates ? " The fit goes through every example" : misses;
    say(`${where}${passes}; its squared norm is ${short(norm, 3)}.`);
  });
})();
