// The Hopfield lab: a grid of pixels, and a recall that is played flip by flip.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, count, short } = lab;
  const fields = part("choices").elements;
  const MOST_OWN = 6;
  const SETTINGS = { set: "pictures", count: "4", rule: "hebb", noise: "20" };
  let state = { ...SETTINGS, pick: "0", seed: "0", own: "", ...lab.given() };
  let run = null; // the server's answer
  let at = 0;
  let bits = []; // what the grid shows
  let wanted = null; // the memory it was, if it is not the reader's own drawing
  let ride = () => {};
  let cells = [];
  let cursor = [0, 0];
  let brush = null; // while drawing: the ink it leaves
  let noise = Number(state.noise) || 20; // what to spoil a memory with; a drawn picture has none
  delete state.at;

  const unpack = (text) => [...text].flatMap((digit) => [8, 4, 2, 1].map((bit) => Boolean(parseInt(digit, 16) & bit)));
  const pack = (ink) => ink.reduce((text, on, k) => (k % 4 ? text : text + parseInt(ink.slice(k, k + 4).map(Number).join(""), 2).toString(16)), "");
  const overlap = (a, b) => (2 * a.reduce((same, on, k) => same + (on === b[k]), 0)) / a.length - 1;

  // --- The grid ---

  const grid = make("svg", {
    class: "pixels",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "picture",
    "aria-label": "The picture. Arrow keys move, Space turns a pixel over, Enter recalls.",
  });

  function lay(side) {
    if (cells.length === side * side) return;
    grid.setAttribute("viewBox", `-0.3 -0.3 ${side + 0.6} ${side + 0.6}`);
    cells = Array.from({ length: side * side }, (_, k) => make("rect", { x: (k % side) + 0.04, y: Math.floor(k / side) + 0.04, width: 0.92, height: 0.92, rx: 0.12 }));
    grid.replaceChildren(...cells);
    cursor = [Math.floor(side / 2), Math.floor(side / 2)];
  }

  function paint() {
    cells.forEach((cell, k) => {
      cell.classList.toggle("ink", bits[k]);
      cell.classList.toggle("turned", wanted !== null && bits[k] !== wanted[k]);
    });
  }

  function drawCursor() {
    grid.querySelector(".cursor")?.remove();
    if (document.activeElement === grid && grid.matches(":focus-visible")) grid.append(make("rect", { class: "cursor", x: cursor[0] + 0.02, y: cursor[1] + 0.02, width: 0.96, height: 0.96, rx: 0.12 }));
  }

  // --- Showing a step ---

  function show(step) {
    if (!run) return;
    at = Math.max(0, Math.min(step, run.flips.length));
    bits = unpack(run.cue);
    wanted = run.pick === null ? null : unpack(run.wanted);
    for (const unit of run.flips.slice(0, at)) bits[unit] = !bits[unit];
    paint();
    part("energy").textContent = run.energies[at].toFixed(1).replace("-", "−");
    part("progress").textContent = `${count(at, "flip")} of ${run.flips.length.toLocaleString("en")}`;
    part("at").value = at;
    ride(at);
    compare();
  }

  function compare() {
    const over = at === run.flips.length;
    part("memories").querySelectorAll("button").forEach((button, k) => {
      const like = overlap(bits, unpack(run.memories[k]));
      const meter = button.querySelector("meter");
      meter.value = Math.abs(like);
      button.classList.toggle("against", like < 0);
      button.classList.toggle("won", over && like === 1);
      button.setAttribute("aria-label", `Begin with ${run.names[k]}${run.stable[k] ? "" : ", forgotten"}: overlap with the picture ${short(Number(like.toFixed(2)))}`);
    });
  }

  function told() {
    if (at < run.flips.length) return at ? `${count(at, "flip")}: the energy is ${short(run.energies[at])}.` : began();
    const { kind, memory, overlap: like } = run.ending;
    const asked = run.pick === null ? null : run.names[run.pick];
    const still = run.flips.length === 0 ? "Nothing moves. " : "";
    if (kind === "memory" && (asked === null || asked === memory)) return `${still}It remembers: ${memory}.`;
    if (kind === "memory") return `${still}It remembers, but the wrong thing: ${memory}.`;
    if (kind === "mirror") return `${still}The mirror image of ${memory}: every pixel is wrong, and it is as deep a valley as the memory itself.`;
    if (kind === "unfinished") return "It has not come to rest yet.";
    return `${still}A spurious state: a place of rest that nobody stored. The nearest memory is ${memory}, with overlap ${short(like)}.`;
  }

  function began() {
    const spoiltNow = run.turned ? `${count(run.turned, "pixel")} of ${bits.length} turned over.` : "";
    return run.pick === null ? `Your picture. ${spoiltNow}` : `${run.names[run.pick]}: ${spoiltNow || "as it was stored."}`;
  }

  function settle(words) {
    say(words);
    lab.remember({ ...address(), ...(at ? { at } : {}) });
  }

  function address() {
    const usual = { ...SETTINGS, pick: "0", seed: "0", own: "" };
    return Object.fromEntries(Object.entries(state).filter(([key, value]) => value !== undefined && value !== usual[key]));
  }

  function step(to) {
    player.stop();
    show(to);
    settle(told());
  }

  const player = lab.player(show, () => {
    part("act=play").textContent = "Recall";
    settle(told());
  });

  // --- What is stored ---

  function thumbnail(text, side) {
    const ink = unpack(text).map((on, k) => (on ? `M${k % side} ${Math.floor(k / side)}h1v1h-1z` : ""));
    return make("svg", { viewBox: `-0.5 -0.5 ${side + 1} ${side + 1}`, "aria-hidden": "true" }, make("path", { d: ink.join("") }));
  }

  function listMemories() {
    const buttons = run.memories.map((text, k) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(run.pick === k));
      button.classList.toggle("lost", !run.stable[k]);
      const name = document.createElement("span");
      name.textContent = run.names[k];
      const meter = document.createElement("meter");
      meter.setAttribute("aria-hidden", "true");
      button.append(thumbnail(text, run.side), meter, name);
      if (!run.stable[k]) {
        const word = document.createElement("span");
        word.className = "lost-word";
        word.textContent = "forgotten";
        button.append(word);
      }
      button.addEventListener("click", () => spoil({ pick: String(k), picture: undefined }));
      const item = document.createElement("li");
      item.append(button);
      return item;
    });
    const focused = [...part("memories").querySelectorAll("button")].indexOf(document.activeElement);
    part("memories").replaceChildren(...buttons);
    if (focused >= 0) part("memories").querySelectorAll("button")[focused]?.focus();
    const forgotten = run.stable.filter((stable) => !stable).length;
    const words = forgotten ? `${forgotten === run.stable.length ? "All" : forgotten} of them are forgotten: they do not stay when left alone.` : "Each of them would stay as it is.";
    part("stored").textContent = `${count(run.names.length, "memory", "memories")} on ${bits.length} pixels, ${run.load}. ${run.names.length === 1 && !forgotten ? "It would stay as it is." : words} Press one to begin with it.`;
  }

  // --- Changing things ---

  const ask = lab.asker((answer) => {
    if (brush !== null) return; // out of date, and it would wipe what is being drawn: the end of the stroke asks again
    run = answer;
    renew(Math.min(answer.at, answer.flips.length));
  });

  function renew(step) {
    lay(run.side);
    bits = unpack(run.cue);
    part("at").max = run.flips.length;
    fields.count.max = run.limit;
    part("limit").textContent = run.limit;
    fields.count.value = run.count;
    part("out=count").value = run.count;
    listMemories();
    ride = lab.rider("energy");
    show(step);
    settle(told());
  }

  function change(more) {
    if (!lab.may()) return;
    player.stop();
    state = { ...state, ...more };
    ask(Object.fromEntries(Object.entries(state).filter(([, value]) => value !== undefined && value !== "")));
  }

  function spoil(more) {
    setNoise(noise);
    change({ ...more, noise: String(noise) });
  }

  function setNoise(value) {
    fields.noise.value = value;
    part("out=noise").value = value;
  }

  // A picture by the reader's hand is what it is: without further noise.
  function redraw() {
    setNoise(0);
    change({ picture: pack(bits), noise: "0" });
  }

  function set(k, ink) {
    if (k < 0 || k >= bits.length || bits[k] === ink) return;
    bits[k] = ink;
    wanted = null;
    paint();
  }

  // --- Mouse, finger, keys ---

  function cellAt(event) {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(grid.getScreenCTM().inverse());
    const [x, y] = [Math.floor(place.x), Math.floor(place.y)];
    return x >= 0 && y >= 0 && x < run.side && y < run.side ? y * run.side + x : -1;
  }

  grid.addEventListener("pointerdown", (event) => {
    if (!run || event.button !== 0 || !lab.may()) return;
    player.stop();
    const k = cellAt(event);
    if (k < 0) return;
    brush = !bits[k];
    set(k, brush);
    grid.setPointerCapture(event.pointerId);
    event.preventDefault();
    grid.focus({ focusVisible: false });
  });
  grid.addEventListener("pointermove", (event) => {
    if (brush === null) return;
    for (const each of event.getCoalescedEvents?.() ?? [event]) set(cellAt(each), brush);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    grid.addEventListener(end, () => {
      if (brush === null) return;
      brush = null;
      redraw();
    });
  }
  grid.addEventListener("focus", drawCursor);
  grid.addEventListener("blur", drawCursor);

  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  grid.addEventListener("keydown", (event) => {
    if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = arrows[event.key];
    const k = () => cursor[1] * run.side + cursor[0];
    if (way) {
      cursor = cursor.map((c, i) => Math.max(0, Math.min(run.side - 1, c + way[i])));
      drawCursor();
      say(`Row ${cursor[1] + 1}, column ${cursor[0] + 1}: ${bits[k()] ? "ink" : "paper"}.`);
    } else if (event.key === " ") {
      if (lab.may()) {
        set(k(), !bits[k()]);
        redraw();
        drawCursor();
      }
    } else if (event.key === "Enter") play();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function play() {
    if (!run || player.playing()) return player.stop();
    const end = run.flips.length;
    const from = at === end ? 0 : at;
    player.play(from, end, end - from ? Math.min(4, 0.8 + 0.03 * (end - from)) : 0);
    if (player.playing()) part("act=play").textContent = "Pause";
  }

  lab.press({
    play,
    flip: () => step(at + 1),
    sweep: () => run && step(run.sweeps.find((end) => end > at) ?? run.flips.length),
    back: () => step(0),
    again: () => spoil({ seed: String(Math.floor(Math.random() * 10000)) }),
    clear: () => {
      if (!lab.may()) return;
      bits = bits.map(() => false);
      wanted = null;
      redraw();
    },
    store: () => {
      const own = state.own ? state.own.split("-") : [];
      if (!run || own.length >= MOST_OWN) return say("Six pictures of yours are stored already.");
      const picture = pack(bits);
      if (run.memories.includes(picture)) return say("This picture is stored already.");
      change({ own: [...own, picture].join("-"), pick: String(run.names.length), picture: undefined });
    },
  });

  part("choices").addEventListener("input", (event) => {
    const out = part(`out=${event.target.name}`);
    if (out) out.value = event.target.value;
    const set = event.target.name === "set";
    if (event.target.name === "noise") noise = Number(event.target.value);
    if (set) setNoise(noise);
    if (["noise", "count", "rule", "set"].includes(event.target.name)) {
      change({ [event.target.name]: event.target.value, ...(set ? { pick: "0", picture: undefined, own: "", noise: String(noise) } : {}) });
    }
  });
  part("choices").addEventListener("submit", (event) => event.preventDefault());
  part("at").addEventListener("input", () => step(Number(part("at").value)));

  // --- To begin with ---

  part("grid").replaceChildren(grid);
  for (const name of Object.keys(SETTINGS)) if (fields[name]) fields[name].value = state[name];
  setNoise(state.noise);
  if (lab.first.flips) {
    run = lab.first;
    renew(run.at);
    fields.count.value = run.count;
  } else if (lab.live) ask(lab.given());
})();
