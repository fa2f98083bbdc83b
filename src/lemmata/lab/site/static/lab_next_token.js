// The next-token lab: the server answers every key with what may come next; buttons append it.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, press, fields, set } = lab;
  const LONGEST = 40; // characters, as the model takes them
  let shown = null;

  // Another text, as if it had been typed; of a long one the end.
  function type(text) {
    set("text", text.slice(-LONGEST));
    fields.text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  press({
    take: () => shown && type(fields.text.value + shown.likeliest),
    more: () => shown && type(fields.text.value + shown.more),
    back: () => type(fields.text.value.slice(0, -1)),
  });

  lab.begin((answer) => {
    shown = answer;
    part("more").textContent = answer.more.replaceAll("/", "↵");
    const open = answer.choices < 1.05 ? "Nothing is open" : `As open as a choice among ${short(answer.choices, 2)}`;
    say(`${answer.named} has probability ${short(answer.probability, 2)}. ${open}; ${lab.count(answer.kept, "character")} can come.`);
  });
})();
