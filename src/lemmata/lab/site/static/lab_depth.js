// The depth lab: every choice asks the server for the variances of another network.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;
  const raised = (power) => `10${String(power).replace(/./g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)])}`;

  // A factor, from its decimal logarithm: a number near one, else a power of ten.
  function factor(log10) {
    if (log10 === null) return "0";
    return Math.abs(log10) < 2 ? short(10 ** log10, 2) : raised(Math.round(log10));
  }

  function fate(log10) {
    if (log10 === null || log10 < -2) return "vanishes";
    if (log10 > 2) return "explodes";
    return Math.abs(log10) < Math.log10(2) ? "keeps about its size" : log10 < 0 ? "fades" : "grows";
  }

  lab.begin(({ signal, gradient }) => {
    part("signal").textContent = factor(signal);
    part("gradient").textContent = factor(gradient);
    const words = `Through ${lab.get("depth")} layers the signal ${fate(signal)}`;
    say(fate(signal) === fate(gradient) ? `${words}, and so does the gradient.` : `${words}; the gradient ${fate(gradient)}.`);
  });
})();
