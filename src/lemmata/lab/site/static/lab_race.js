// The race lab: every control asks the server for another race.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, element } = lab;

  function row({ name, lr, loss, fate, step }) {
    const became = fate === "arrived" && step !== null ? `there at step ${step}` : fate;
    const kept = { arrived: "right", diverged: "wrong", "on the way": "" }[fate];
    const cells = [short(lr, 3), loss === null ? "–" : short(loss, 3), became].map((word) => element("td", {}, word));
    return element("tr", { className: kept }, element("th", { scope: "row" }, name), ...cells);
  }

  // What gradient descent, if it runs in the first place, has to do with the longest step.
  function told({ racers, limit, local }) {
    const there = racers.filter(({ step }) => step !== null).sort((a, b) => a.step - b.step);
    const winner = there.length ? `${there[0].name} is there first, at step ${there[0].step}.` : "Nobody has arrived yet.";
    const [first] = racers;
    if (limit === null || lab.get("one") !== "sgd") return winner;
    const near = Math.abs(first.lr / limit - 1) < 1e-9;
    const side = near ? "exactly" : first.lr > limit ? "beyond" : "below";
    const where = local ? "2/L of the place where it ends" : "2/L";
    return `${winner} The step of gradient descent, ${short(first.lr, 3)}, is ${side} ${where}, ${short(limit, 3)}.`;
  }

  lab.begin((answer) => {
    part("racers").replaceChildren(...answer.racers.map(row));
    const network = lab.get("where") === "network";
    for (const name of ["across", "up"]) document.getElementById(name).disabled = network;
    document.getElementById("seed").disabled = !network;
    say(told(answer));
  });
})();
