// The dropout lab: boxes choose the units of one network; the server shows it among all that there are.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, short, count } = lab;
  const boxes = [...part("boxes").querySelectorAll("[data-unit]")];
  const [ALL, NOTHING] = ["1111", 1e-9]; // a gap below that is rounding

  const kept = () => boxes.map((box) => (box.checked ? "1" : "0")).join("");
  const state = () => ({ ...lab.state(), ...(kept() === ALL ? {} : { kept: kept() }) });
  const check = (bits) => boxes.forEach((box, unit) => (box.checked = (bits[unit] ?? "1") === "1"));

  function offer() {
    boxes.forEach((box, unit) => (box.disabled = unit >= Number(lab.get("units"))));
  }

  function show({ mask, networks, probability, gap }, newest = true, news = "") {
    part("gap").textContent = gap < NOTHING ? "0" : short(gap, 2);
    part("probability").textContent = short(probability, 3);
    if (!newest) return;
    const left = mask.filter(Boolean).length;
    const one = `The network with ${left} of ${count(mask.length, "unit")} counts ${short(100 * probability, 3)} % of ${count(networks, "network")}.`;
    const same = gap < NOTHING ? "The scaled network is exactly their mean." : `The scaled network is up to ${short(gap, 2)} away from their mean.`;
    say(`${news} ${one} ${same}`.trim());
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words = "") {
    offer();
    ask(state(), words);
  }

  // --- What the reader does ---

  boxes.forEach((box, unit) => {
    box.addEventListener("change", () => {
      if (lab.may()) change(`Unit ${unit + 1} is ${box.checked ? "kept" : "dropped"}.`);
    });
  });

  lab.controls((name) => {
    if (!name) check(ALL);
    change();
  });

  lab.press({
    draw() {
      if (!lab.may()) return;
      const keep = Number(lab.get("keep"));
      check(boxes.map((box) => (box.disabled || Math.random() < keep ? "1" : "0")).join(""));
      change("A network was drawn.");
    },
  });

  // --- To begin with ---

  check(lab.given().kept ?? ALL);
  offer();
  if (lab.first.mask) show(lab.first);
  else if (lab.live) ask(state());
})();
