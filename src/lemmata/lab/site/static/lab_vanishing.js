// The vanishing lab: every slider asks the server for the gradients of another network.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, element } = lab;
  const large = [[12, "trillion"], [9, "billion"], [6, "million"]];

  // "about 5,000 times", from the decimal logarithm; beyond words as a power of ten.
  function times(log10) {
    if (log10 >= 15) return `10${String(Math.round(log10)).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])} times`;
    const [power, word] = large.find(([least]) => log10 >= least) ?? [0, ""];
    const number = Number((10 ** (log10 - power)).toPrecision(log10 < 1 ? 2 : 1));
    return `about ${number.toLocaleString("en")}${word && ` ${word}`} times`;
  }

  const fates = { vanishes: "vanishes", explodes: "explodes", neither: "neither vanishes nor explodes" };

  function told({ fate, log10, rules: [correct] }) {
    let size = log10 === null ? "nothing of it is left" : "it is as large as before";
    if (Math.abs(log10) > 0.02) size = `it is ${times(Math.abs(log10))} ${log10 < 0 ? "smaller" : "larger"}`;
    const must = correct.says === "vanishes" ? "It had to: every step shrinks it." : "The correct rule leaves this case open.";
    return `The gradient ${fates[fate]}: after ${lab.get("steps")} steps ${size}. ${must}`;
  }

  function row({ rule, who, says, kept }) {
    const head = element("th", { scope: "row" }, `${rule} `, element("span", { className: "note" }, who));
    const marks = { right: "✓ right", wrong: "✗ wrong", silent: "–" };
    return element("tr", { className: kept }, head, element("td", {}, says), element("td", {}, marks[kept]));
  }

  lab.begin((answer) => {
    part("bound").textContent = short(answer.bound, 3);
    part("sizes").textContent = `α = ${short(answer.slope)}, σ₁(U) = ${short(answer.norm, 3)}, spectral radius ${short(answer.radius, 3)}`;
    part("word=size").textContent = lab.get("matrix") === "shift" ? "Largest singular value of U" : "Spectral radius of U";
    part("rules").replaceChildren(...answer.rules.map(row));
    say(told(answer));
  });
})();
