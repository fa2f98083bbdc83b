// The tokens lab: the server answers every key with the pieces of the text; each is shown with its number.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, count, element } = lab;

  lab.begin(({ pieces, numbers, words, size }) => {
    part("pieces").replaceChildren(...pieces.map((piece, k) => element("span", { title: `number ${numbers[k]}` }, piece)));
    const each = words ? `, ${short(pieces.length / words, 2)} for a word` : "";
    say(`${count(pieces.length, "piece")}${each}, from a vocabulary of ${size}.`);
  });
})();
