// The boundary lab: trains a network in a child process and draws its map of the plane as the news come.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, count } = lab;
  const form = part("choices");
  const fields = form.elements;
  const names = ["data", "noise", "width", "depth", "activation", "rate", "epochs", "seed"];
  const usual = Object.fromEntries(names.map((name) => [name, { data: "moons", width: "16", depth: "2", activation: "tanh", rate: "0.01", epochs: "40", seed: "0" }[name]]));
  let before = null; // what the server says of the untrained network
  let frames = []; // the maps of this training so far
  let at = 0;
  let job = null; // the stream of the training that runs
  let curve = null; // its figures are fetched one at a time
  let asked = { ...lab.given() };

  // --- The map ---

  const canvas = document.createElement("canvas");
  canvas.className = "map";
  canvas.width = canvas.height = 720;
  canvas.setAttribute("role", "img");
  const small = document.createElement("canvas");

  let palette = null;

  function look() {
    const marker = document.createElement("span");
    lab.root.append(marker);
    const read = (name) => {
      marker.style.color = `var(${name})`;
      const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      probe.fillStyle = getComputedStyle(marker).color;
      probe.fillRect(0, 0, 1, 1);
      return [...probe.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    };
    palette = { paper: read("--paper"), ink: read("--ink"), classes: [read("--figure-0"), read("--figure-1")] };
    marker.remove();
  }

  const css = (rgb) => `rgb(${rgb.join(" ")})`;

  function decode(frame) {
    return Array.from({ length: frame.side * frame.side }, (_, k) => parseInt(frame.cells.slice(2 * k, 2 * k + 2), 16) / 255);
  }

  function draw(frame) {
    if (!palette) look();
    const { side, box } = frame;
    const chance = decode(frame);
    small.width = small.height = side;
    const dots = small.getContext("2d");
    const image = dots.createImageData(side, side);
    chance.forEach((p, k) => {
      const target = 4 * ((side - 1 - Math.floor(k / side)) * side + (k % side)); // rows upwards
      const sure = 0.1 + 0.36 * Math.abs(2 * p - 1);
      const ink = palette.classes[p > 0.5 ? 1 : 0];
      for (let c = 0; c < 3; c++) image.data[target + c] = palette.paper[c] + sure * (ink[c] - palette.paper[c]);
      image.data[target + 3] = 255;
    });
    dots.putImageData(image, 0, 0);
    const board = canvas.getContext("2d");
    board.imageSmoothingEnabled = true;
    board.imageSmoothingQuality = "high";
    board.drawImage(small, 0, 0, canvas.width, canvas.height);
    border(board, chance, side);
    dotted(board, box, side);
  }

  // Where the chance crosses one half: in each square of four cells, the line between the crossings of its edges.
  function border(board, chance, side) {
    const size = canvas.width / side;
    const value = (i, j) => chance[i * side + j] - 0.5;
    const place = (i, j) => [(j + 0.5) * size, canvas.height - (i + 0.5) * size];
    board.beginPath();
    for (let i = 0; i + 1 < side; i++) {
      for (let j = 0; j + 1 < side; j++) {
        const ring = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]];
        const ends = [];
        ring.forEach((from, k) => {
          const to = ring[(k + 1) % 4];
          const [u, v] = [value(...from), value(...to)];
          if (u > 0 === v > 0) return;
          const [a, b] = [place(...from), place(...to)];
          ends.push(a.map((start, c) => start + (u / (u - v)) * (b[c] - start)));
        });
        for (let k = 0; k + 1 < ends.length; k += 2) {
          board.moveTo(...ends[k]);
          board.lineTo(...ends[k + 1]);
        }
      }
    }
    board.strokeStyle = css(palette.ink);
    board.lineWidth = 3;
    board.lineCap = "round";
    board.stroke();
  }

  function dotted(board, [left, right, bottom, top], side) {
    const half = (span) => span / (side - 1) / 2; // the box holds the middles of the cells
    const [dx, dy] = [half(right - left), half(top - bottom)];
    board.strokeStyle = css(palette.paper);
    board.lineWidth = 2;
    for (const [x, y, label] of before?.points ?? []) {
      const u = ((x - left + dx) / (right - left + 2 * dx)) * canvas.width;
      const v = canvas.height - ((y - bottom + dy) / (top - bottom + 2 * dy)) * canvas.height;
      board.fillStyle = css(palette.classes[label]);
      board.beginPath();
      if (label === 0) board.arc(u, v, 7, 0, 7);
      else board.rect(u - 6, v - 6, 12, 12);
      board.fill();
      board.stroke();
    }
  }

  // --- Frames ---

  function show(index) {
    if (!frames.length) return;
    at = Math.max(0, Math.min(index, frames.length - 1));
    const { frame, accuracy, loss } = frames[at];
    draw(frame);
    part("at").max = frames.length - 1;
    part("at").value = at;
    part("out=epoch").value = frame.epoch;
    part("accuracy").textContent = accuracy === undefined ? "–" : `${(100 * accuracy).toFixed(1)} %`;
    canvas.setAttribute("aria-label", `Map of the plane after ${count(frame.epoch, "epoch")}${accuracy === undefined ? "" : `: ${(100 * accuracy).toFixed(1)} % of fresh points right${loss === undefined ? "" : `, loss ${loss.toPrecision(3)}`}`}`);
  }

  const player = lab.player(show, () => (part("act=replay").textContent = "Replay"));

  // --- Settings ---

  const chosen = () => Object.fromEntries(names.map((name) => [name, fields[name].value]));

  function state() {
    const now = chosen();
    if (asked.noise === undefined) delete now.noise; // the data set's own
    return Object.fromEntries(Object.entries(now).filter(([name, value]) => value !== usual[name]));
  }

  const ask = lab.asker((answer) => {
    before = answer;
    begin();
  });

  function begin() {
    if (job) return;
    player.stop();
    frames = [{ frame: before.frame, accuracy: before.accuracy }];
    fields.noise.value = before.noise;
    part("out=noise").value = before.noise;
    part("size").textContent = `${count(before.parameters, "parameter")}, not trained yet`;
    part("command-row").hidden = !before.command;
    part("command-row").querySelector("[data-command]").textContent = before.command;
    part("figure=curve").replaceChildren();
    part("epochs").textContent = fields.epochs.value;
    part("act=replay").hidden = true;
    show(0);
    say("Before anything is learnt: chance alone chose these colours.");
  }

  function changed(event) {
    const { name } = event.target;
    const out = part(`out=${name}`);
    if (out) out.value = event.target.value;
    if (!names.includes(name)) return;
    if (name === "noise") asked.noise = fields.noise.value;
    if (name === "data") delete asked.noise;
  }

  form.addEventListener("input", changed);
  form.addEventListener("change", (event) => {
    if (!names.includes(event.target.name) || !form.checkValidity()) return;
    stop();
    if (!lab.may()) return;
    lab.remember(state());
    ask(state());
  });

  // --- Training ---

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.checkValidity()) train();
  });

  async function train() {
    stop();
    lab.complain("");
    part("act=train").disabled = true;
    const answer = await lab.post("/labs/boundary/run", { state: state() });
    part("act=train").disabled = false;
    if (answer.error) return lab.complain(answer.error);
    const source = new EventSource(answer.events);
    job = { id: answer.job, source, heard: [], drawing: false };
    const mine = job;
    frames = [];
    curve = null;
    buttons();
    say("Waiting for a free process.");
    source.onmessage = (message) => mine === job && hear(mine, JSON.parse(message.data));
    source.onerror = () => mine === job && source.readyState === EventSource.CLOSED && end("The training was lost.");
  }

  function buttons() {
    part("act=stop").hidden = !job;
    part("act=train").hidden = Boolean(job);
    part("act=replay").hidden = Boolean(job) || frames.length < 2;
  }

  // News may come faster than the eye follows: one map for each frame of the screen, two at most when many wait.
  function hear(mine, event) {
    if (event.event === "running") say("The network is being made; the very first training takes a moment longer.");
    if (event.event === "started") {
      part("epochs").textContent = event.epochs;
      say(`Learning ${event.epochs} epochs.`);
    }
    if (event.frame) mine.heard.push(event);
    if (["done", "failed", "cancelled"].includes(event.event)) {
      mine.source.close();
      mine.over = event;
    }
    if (!mine.drawing) drawNext(mine);
  }

  function drawNext(mine) {
    mine.drawing = mine === job;
    if (mine !== job) return;
    const next = mine.heard.shift();
    if (next) {
      const atEnd = at >= frames.length - 1; // else the reader looks back
      frames.push(next);
      if (atEnd) show(frames.length - 1);
      else part("at").max = frames.length - 1;
      if (next.figures) redrawCurve(mine);
      setTimeout(() => drawNext(mine), lab.still.matches ? 0 : 45);
    } else {
      mine.drawing = false;
      if (mine.over) end(closing(mine.over), mine);
    }
  }

  async function redrawCurve(mine, last = false) {
    if (curve && !last) return; // the next one will be newer anyway
    curve = lab.fetched(`/labs/boundary/jobs/${mine.id}/figures`);
    const found = await curve;
    if (found && mine.id === (job ?? mine).id) lab.show(JSON.parse(found)); // else the next one may come through
    curve = null;
  }

  function closing(event) {
    const last = frames[frames.length - 1];
    if (event.event === "failed") return event.message.replace(/^\w+: /, "");
    if (event.event === "cancelled") return `Stopped after ${count(last?.frame.epoch ?? 0, "epoch")}.`;
    return `Done: ${(100 * event.result.scores.accuracy).toFixed(1)} % of the points that it has not seen are right.`;
  }

  function end(words, mine) {
    job = null;
    buttons();
    part("size").textContent = before ? count(before.parameters, "parameter") : "";
    say(words);
    if (mine) redrawCurve(mine, true);
  }

  function stop() {
    player.stop();
    if (!job) return;
    const { id, source } = job;
    source.close();
    lab.post(`/jobs/${id}/cancel`, {});
    end(closing({ event: "cancelled" }));
  }

  lab.press({
    stop,
    replay: () => {
      if (player.playing()) return player.stop();
      player.play(0, frames.length - 1, 0.08 * frames.length);
      if (player.playing()) part("act=replay").textContent = "Pause";
    },
  });
  part("at").addEventListener("input", (event) => {
    event.stopPropagation();
    player.stop();
    show(Number(part("at").value));
  });
  document.addEventListener("lemmata:theme", repaint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  function repaint() {
    look();
    show(at);
  }

  // --- To begin with ---

  part("map").replaceChildren(canvas);
  for (const [name, value] of Object.entries(lab.given())) {
    if (!names.includes(name)) continue;
    fields[name].value = value;
    if (fields[name].value !== value && fields[name].options) fields[name].add(new Option(value, value, true, true));
  }
  for (const name of names) if (part(`out=${name}`)) part(`out=${name}`).value = fields[name].value;
  if (lab.first.frame) {
    before = lab.first;
    begin();
  } else if (lab.live) ask(state());
})();
