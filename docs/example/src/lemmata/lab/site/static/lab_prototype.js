// The prototype lab: each slider moves the first prototype, and the server answers with the plane.
"use strict";

(() => {
  const lab = window.lemmataLab;

  function show({ part }) {
    lab.say(`The first prototype has ${Math.round(100 * part)} % of the plane.`);
  }

  const ask = lab.asker((answer, newest) => {
    show(answer);
    if (newest) lab.remember(lab.state());
  });

  lab.controls(() => ask(lab.state()));
  if (lab.first.part !== undefined) show(lab.first);
  else if (lab.live) ask(lab.state());
})();
