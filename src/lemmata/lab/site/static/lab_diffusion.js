// The diffusion lab: the server answers every move of a control with other paths and their variance.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;

  lab.begin(({ variance, wanted, words }) => {
    part("variance").textContent = short(variance, 3);
    part("wanted").textContent = short(wanted, 3);
    say(words);
  });
})();
