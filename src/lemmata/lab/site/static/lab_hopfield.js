// The Hopfield lab: a picture of pixels, and its recall, played flip by flip.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, count, short, element } = lab;
  const { unpack, pack, thumbnail } = lab.pixels;
  const kept = { pick: "0", seed: "0", own: "" }; // beside the controls, with what they are to begin with
  let more = { ...kept };
  let run = null; // the server's answer
  let listed = ""; // the memories that are shown
  let noise = "20"; // what to spoil a memory with; a drawn picture has none

  const overlap = (a, b) => (2 * a.reduce((same, on, k) => same + (on === b[k]), 0)) / a.length - 1;
  const differing = () => Object.entries(more).filter(([name, value]) => value !== undefined && value !== kept[name]);
  const state = () => ({ ...lab.state(), ...Object.fromEntries(differing()) });

  // --- Showing a step ---

  const ride = lab.rider("energy");
  const time = lab.timeline({ show, told, state, seconds: (flips) => Math.min(4, 0.8 + 0.03 * flips) });
  const picture = lab.pixels.canvas({
    label: "The picture. Arrow keys move, Space turns a pixel over, Enter recalls.",
    began: time.stop,
    drawn: redraw,
    enter: time.play,
  });

  function show(at) {
    if (!run) return;
    const bits = unpack(run.cue);
    for (const unit of run.flips.slice(0, at)) bits[unit] = !bits[unit];
    picture.show(bits, run.pick === null ? null : unpack(run.wanted));
    part("energy").textContent = run.energies[at].toFixed(1).replace("-", "−");
    part("progress").textContent = `${count(at, "flip")} of ${run.flips.length.toLocaleString("en")}`;
    ride(at);
    part("memories").querySelectorAll("button").forEach((button, k) => {
      const like = overlap(bits, unpack(run.memories[k]));
      button.querySelector("meter").value = Math.abs(like);
      button.classList.toggle("against", like < 0);
      button.classList.toggle("won", at === run.flips.length && like === 1);
      button.setAttribute("aria-label", `Begin with ${run.names[k]}${run.stable[k] ? "" : ", forgotten"}: overlap ${short(like, 2)}`);
    });
  }

  function told(at) {
    if (at === run.flips.length) return run.ended;
    return at ? `${count(at, "flip")}: the energy is ${short(run.energies[at])}.` : run.began;
  }

  // --- What is stored ---

  function memory(text, k) {
    const forgotten = run.stable[k] ? [] : [element("span", { className: "lost-word" }, "forgotten")];
    const parts = [thumbnail(text), element("meter", { ariaHidden: "true" }), element("span", {}, run.names[k]), ...forgotten];
    const button = element("button", { type: "button", ariaPressed: String(run.pick === k) }, ...parts);
    button.classList.toggle("lost", !run.stable[k]);
    button.addEventListener("click", () => spoil({ pick: String(k), picture: undefined }));
    return element("li", {}, button);
  }

  function listMemories() {
    const list = JSON.stringify([run.memories, run.names, run.stable, run.pick]);
    if (list === listed) return; // another noise, the same memories
    listed = list;
    const focused = [...part("memories").querySelectorAll("button")].indexOf(document.activeElement);
    part("memories").replaceChildren(...run.memories.map(memory));
    if (focused >= 0) part("memories").querySelectorAll("button")[focused]?.focus();
    part("stored").textContent = run.stored;
  }

  // --- Changing things ---

  const ask = lab.asker((answer) => picture.drawing() || renew(answer)); // it would wipe what is being drawn

  function renew(answer) {
    run = answer;
    lab.fields.count.max = run.limit - 1; // steps above one
    lab.set("count", run.count);
    part("limit").textContent = run.limit;
    listMemories();
    time.renew(run.flips.length, run.at);
    time.rest();
  }

  function change(fresh = {}) {
    if (!lab.may()) return;
    time.stop();
    more = { ...more, ...fresh };
    ask(state());
  }

  function spoil(fresh) {
    lab.set("noise", noise);
    change(fresh);
  }

  // A picture by the reader's hand is what it is: without further noise.
  function redraw(bits) {
    lab.set("noise", "0");
    change({ picture: pack(bits) });
  }

  function store() {
    const drawn = pack(picture.bits());
    if (!run || run.memories.includes(drawn)) return say("This picture is stored already.");
    if (more.own.split("-").length >= 6) return say("Six pictures of yours are stored already.");
    change({ own: [more.own, drawn].filter(Boolean).join("-"), pick: String(run.names.length), picture: undefined });
  }

  lab.press({
    store,
    sweep: () => run && time.go(run.sweeps.find((end) => end > time.at()) ?? run.flips.length),
    again: () => spoil({ seed: String(Math.floor(Math.random() * 10000)) }),
    clear: () => redraw(picture.bits().map(() => false)),
  });
  lab.controls((name) => {
    if (name === "noise") noise = lab.get("noise");
    if (!name) noise = "20";
    if (name === "set") lab.set("noise", noise);
    change(name === "set" || !name ? { ...kept, picture: undefined } : {});
  });

  // --- To begin with ---

  part("picture").replaceChildren(picture.svg);
  const { pick = "0", seed = "0", own = "", picture: drawn, at } = lab.given();
  more = { pick, seed, own, picture: drawn };
  if (lab.get("noise") !== "0") noise = lab.get("noise");
  if (lab.first.flips) renew(lab.first);
  else if (lab.live) ask({ ...state(), ...(at ? { at } : {}) });
})();
