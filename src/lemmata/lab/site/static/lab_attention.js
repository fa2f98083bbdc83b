// The attention lab: every key and every slider asks the server where the heads look; characters can be pressed.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, element, fields, set } = lab;

  // The place whose look is shown, as if its slider had been moved.
  function look(place) {
    set("place", place);
    fields.place.dispatchEvent(new Event("input", { bubbles: true }));
    part("line").children[place - 1].focus();
  }

  // Buttons are kept from answer to answer, so that one that is held or has the focus stays.
  function line({ characters, weights, place }) {
    const row = part("line");
    while (row.children.length > characters.length) row.lastChild.remove();
    while (row.children.length < characters.length) {
      const number = row.children.length + 1;
      row.append(element("button", { type: "button", onclick: () => look(number) }));
    }
    const largest = Math.max(...weights);
    [...row.children].forEach((button, k) => {
      button.textContent = characters[k];
      button.style.setProperty("--weight", `${Math.round((100 * weights[k]) / largest)}%`);
      button.setAttribute("aria-pressed", String(k + 1 === place));
      button.setAttribute("aria-label", `${characters[k]}, place ${k + 1}, weight ${short(weights[k], 2)}`);
    });
  }

  lab.begin((answer) => {
    line(answer);
    const { characters, place, most, spread, ahead, bits } = answer;
    const to = most === place ? "itself" : `“${characters[most - 1]}” at place ${most}`;
    const even = spread < 1.05 ? "and at nothing else" : `as evenly as at ${short(spread, 2)} places`;
    const future = ahead > 0.005 ? ` ${Math.round(100 * ahead)} % of it looks ahead.` : "";
    const cost = bits === null ? "" : ` The text costs ${short(bits, 3)} bits a character.`;
    say(`“${characters[place - 1]}” looks most at ${to}, ${even}.${future} Next: ${answer.next}, with probability ${short(answer.probability, 2)}.${cost}`);
  });
})();
