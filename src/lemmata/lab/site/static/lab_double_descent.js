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
    const where = Math.abs(away) <= 1 ? "At the interpolation threshold." : away < 0 ? `${count(-away, "parameter")} below the threshold.` : `${count(away, "parameter")} beyond the threshold.`;
    const passes = interpolates ? " The fit goes through every example" : ridge === "none" ? " The fit misses examples" : " The ridge keeps the fit from going through every example";
    say(`${where}${passes}; its squared norm is ${short(norm, 3)}.`);
  });
})();
