// The boundary lab: trains a network in a child process and draws its map of the plane as the news come.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, say, count } = lab;
  const map = lab.map();
  let before = null; // what the server says of the untrained network
  let frames = []; // the maps of this training so far
  let job = null; // the training that runs
  let ended = ""; // how the last one did
  let own = lab.given().noise !== undefined; // else the noise is that of the data set

  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  function state() {
    const { noise, ...chosen } = lab.state();
    return own ? { ...chosen, noise: lab.get("noise") } : chosen;
  }

  // --- The map at one of the epochs so far ---

  const time = lab.timeline({ show, told, state, seconds: (steps) => 0.08 * steps });

  function show(at) {
    if (!frames.length) return;
    const { frame, accuracy } = frames[at];
    const words = `Map of the plane after ${count(frame.epoch, "epoch")}: ${percent(accuracy)} of fresh points right`;
    const groups = [part("show=learnt").checked && { points: before.learnt, size: 5 }, part("show=fresh").checked && { points: before.fresh, size: 9 }];
    map.draw(frame, groups.filter(Boolean), words);
    part("out=epoch").value = frame.epoch;
    part("accuracy").textContent = percent(accuracy);
    part("size").textContent = `${count(before.parameters, "parameter")}, ${status(frame.epoch)}`;
  }

  function status(epoch) {
    if (!epoch && !job) return "not trained yet";
    return job ? `in training: epoch ${epoch} of ${job.epochs}` : `trained for ${count(epoch, "epoch")}`;
  }

  function told(at) {
    if (job) return `Learning: epoch ${frames.at(-1)?.frame.epoch ?? 0} of ${job.epochs}.`;
    if (!at) return "Before anything is learnt: chance alone chose these colours.";
    const { frame, accuracy } = frames[at];
    return at < frames.length - 1 ? `After ${count(frame.epoch, "epoch")}: ${percent(accuracy)} of fresh points right.` : ended;
  }

  // --- Settings ---

  const ask = lab.asker((answer, newest) => job || untrained(answer, newest));
  function untrained(answer, newest = true) {
    before = answer;
    frames = [answer];
    if (!own) lab.set("noise", answer.noise);
    part("command-row").hidden = !answer.command;
    part("command-row").querySelector("[data-command]").textContent = answer.command;
    part("epochs").textContent = lab.get("epochs");
    time.renew(0, 0);
    if (newest) time.rest();
    buttons();
  }

  lab.controls((name) => {
    if (name === "noise") own = true;
    if (name === "data" || !name) own = false;
    stop();
    ask(state());
  });

  // --- Training ---

  async function train() {
    if (!lab.may() || !before) return;
    time.stop();
    lab.complain("");
    const mine = (job = { epochs: lab.get("epochs"), id: "", heard: [], wanted: true });
    buttons();
    say("Waiting for a free process.");
    const answer = await lab.post("/labs/boundary/run", { state: state(), brief: "wide" });
    if (answer.error) return end(mine, answer.error);
    mine.id = answer.job;
    if (!mine.wanted) return cancel(mine);
    const over = [() => end(mine, "The training was lost."), (silent) => lab.complain(silent ? window.lemmata.lost : "")];
    mine.leave = lab.follow(answer.events, (event, last) => hear(mine, event, last), ...over);
  }

  // News may come faster than the eye follows: one map at a time, each shown for a moment.
  function hear(mine, event, over) {
    if (event.event === "running") say("The network is being made; the very first training takes a moment longer.");
    if (event.event === "started") frames = [];
    if (event.frame) mine.heard.push(event);
    if (over) mine.over = event;
    if (!mine.clock) drawNext(mine);
  }

  function drawNext(mine) {
    mine.clock = 0;
    if (mine !== job) return;
    const next = mine.heard.shift();
    if (!next) return mine.over && end(mine, closing(mine.over));
    const looking = time.at() < time.end(); // back, at an earlier epoch
    frames.push(next);
    lab.show(next);
    time.renew(frames.length - 1, looking ? time.at() : frames.length - 1);
    time.rest();
    part("bar").value = next.frame.epoch / mine.epochs;
    mine.clock = setTimeout(() => drawNext(mine), lab.still.matches ? 0 : 45);
  }

  function closing({ event, message, result }) {
    if (event === "failed") return message.replace(/^\w+: /, "");
    if (event === "cancelled") return `Stopped after ${count(frames.at(-1)?.frame.epoch ?? 0, "epoch")}.`;
    return `Done: ${percent(result.scores.accuracy)} of the points that it has not seen are right.`;
  }

  async function end(mine, words) {
    if (mine !== job) return;
    job = null;
    ended = words;
    buttons();
    show(time.at());
    say(words);
    const found = mine.over?.event === "done" && (await lab.fetched(`/labs/boundary/jobs/${mine.id}/figures`));
    if (found && !job) lab.show(JSON.parse(found));
  }

  const cancel = ({ id }) => id && lab.post(`/jobs/${id}/cancel`, {});

  function stop() {
    if (!job) return;
    job.leave?.();
    job.wanted = false;
    cancel(job);
    end(job, closing({ event: "cancelled" }));
  }

  function buttons() {
    part("act=stop").hidden = part("bar").hidden = !job;
    part("act=train").hidden = Boolean(job);
    part("act=play").disabled = Boolean(job) || frames.length < 2;
  }

  // --- To begin with ---

  part("picture").replaceChildren(map.canvas);
  lab.press({ train, stop });
  for (const name of ["learnt", "fresh"]) part(`show=${name}`).addEventListener("change", () => show(time.at()));
  if (lab.first.frame) untrained(lab.first);
  else if (lab.live) ask(state());
})();
