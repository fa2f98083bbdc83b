// The vanishing lab: every slider asks the server for the gradients of another network.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short } = lab;
  const form = part("choices");
  const fields = form.elements;
  const usual = { activation: "tanh", matrix: "random", size: "0.5", drive: "0.3", steps: "60", seed: "0" };
  const names = Object.keys(usual);

  const state = () => Object.fromEntries(names.map((name) => [name, fields[name].value]).filter(([name, value]) => value !== usual[name]));

  function told(answer) {
    const left = answer.left.replace("10^", "10 to the power ").replace("-", "−");
    const [correct] = answer.rules;
    const must = correct.says === "vanishes" ? "It had to: every step shrinks it." : "The correct rule leaves this case open.";
    const fate = { vanishes: "The gradient vanishes", explodes: "The gradient explodes", neither: "The gradient neither fades nor grows for good" }[answer.fate];
    return `${fate}: its norm is ${left} after ${fields.steps.value} steps. ${must}`;
  }

  function row({ rule, who, says, kept }) {
    const line = document.createElement("tr");
    line.className = kept;
    const head = document.createElement("th");
    head.scope = "row";
    const note = document.createElement("span");
    note.className = "note";
    note.textContent = who;
    head.append(`${rule} `, note);
    line.append(head, ...[says, kept === "right" ? "right here" : kept].map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    return line;
  }

  function show(answer) {
    part("bound").textContent = short(Number(answer.bound.toPrecision(3)));
    part("sizes").textContent = `α = ${short(answer.slope)}, σ₁(U) = ${short(Number(answer.norm.toPrecision(3)))}, spectral radius ${short(Number(answer.radius.toPrecision(3)))}`;
    part("size-word").textContent = fields.matrix.value === "shift" ? "Largest singular value of U" : "Spectral radius of U";
    part("rules").replaceChildren(...answer.rules.map(row));
    say(told(answer));
  }

  const ask = lab.asker((answer, newest) => {
    show(answer);
    if (newest) lab.remember(state()); // browsers refuse addresses that change sixty times a second
  });

  form.addEventListener("input", (event) => {
    const out = part(`out=${event.target.name}`);
    if (out) out.value = event.target.value;
    if (!names.includes(event.target.name) || !form.checkValidity() || !lab.may()) return;
    ask(state());
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  // --- To begin with ---

  for (const [name, value] of Object.entries(lab.given())) if (names.includes(name)) fields[name].value = value;
  for (const name of names) if (part(`out=${name}`)) part(`out=${name}`).value = fields[name].value;
  if (lab.first.rules) show(lab.first);
  else if (lab.live) ask(state());
})();
