// The form of a training and its run, live: see templates/form.html and templates/run.html.
"use strict";

(() => {
  const { live, locked, lost, post, part, follow: listen } = window.lemmata;
  const slot = document.querySelector("[data-run-panel]"); // where a run is shown
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let leave = () => {}; // stops listening to the run that is shown

  const ready = (fresh) => fresh.querySelectorAll("[data-copy]").forEach((button) => (button.hidden = false));

  // --- What comes after the page: the form, the run that is shown, the list of runs ---

  async function load(place) {
    const found = live ? await part(place.dataset.load) : "";
    const status = place.querySelector("[role=status]");
    if (!found && status) status.textContent = !live ? locked : place === slot ? "there is no such run" : lost;
    if (!found) return;
    place.innerHTML = found; // our own page, every text in it escaped
    ready(place);
    place.querySelectorAll("form[data-train]").forEach(arm);
    place.querySelectorAll("[data-run]").forEach((panel) => {
      armPanel(panel);
      if (panel.dataset.job) follow(panel.dataset.run, panel.dataset.job, panel.dataset.events);
    });
    if (location.hash === "#run") place.querySelector("#run")?.scrollIntoView();
  }

  // --- The form ---

  function arm(form) {
    const { system } = form.dataset;
    const show = (name, text) => (form.querySelector(`[data-train-${name}]`).textContent = text ?? "");
    const showCode = (name, text) => (form.querySelector(`[data-train-${name}] [data-command]`).textContent = text);
    const saying = (field) => (field.type === "checkbox" ? String(field.checked) : field.value.trim());
    const fields = () => [...form.elements].filter((field) => field.dataset.usual !== undefined);
    const chosen = () =>
      Object.fromEntries(fields().map((f) => [f.name, saying(f), f.dataset.usual]).filter(([, now, usual]) => now !== usual));
    const choice = () => ({ data: form.elements.data.value, chosen: chosen() });
    let asked = 0;

    function address() {
      const state = new URLSearchParams({ data: form.elements.data.value, ...chosen() });
      const run = new URLSearchParams(location.search).get("run");
      if (run) state.set("run", run);
      return `?${state}`;
    }

    async function look() {
      history.replaceState(null, "", address() + location.hash);
      if (!form.checkValidity()) return;
      const number = ++asked;
      form.setAttribute("aria-busy", "true");
      const found = await post(`/systems/${system}/choice`, choice());
      if (number !== asked) return; // something else was chosen meanwhile
      form.setAttribute("aria-busy", "false");
      show("problem", found.error ?? found.problem);
      if (found.error || found.problem) return;
      show("size", found.size);
      showCode("command", found.command);
      showCode("python", found.python);
    }

    form.elements.data.addEventListener("change", () => {
      location.search = new URLSearchParams({ data: form.elements.data.value }); // another recipe, another form
    });
    form.addEventListener("change", (event) => event.target.name !== "data" && look());
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      for (const field of fields()) {
        if (field.type === "checkbox") field.checked = field.dataset.usual === "true";
        else field.value = field.dataset.usual;
      }
      look();
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      training("");
      const found = await post(`/systems/${system}/train`, choice());
      show("problem", found.error);
      if (found.error) return training(null);
      await follow(found.run, found.job, found.events);
      goTo(slot);
    });
    form.querySelector("[data-train-stop]").addEventListener("click", (event) => cancel(event.target, event.target.dataset.job));
  }

  // The button of the form is a progress bar and Stop while `job` runs; of one that is not named yet, only the bar.
  function training(job, share) {
    for (const form of document.querySelectorAll("form[data-train]")) {
      const find = (name) => form.querySelector(`[data-train-${name}]`);
      find("start").hidden = job !== null;
      find("going").hidden = job === null;
      find("stop").disabled = !job;
      find("stop").dataset.job = job ?? "";
      if (share === undefined) find("progress").removeAttribute("value");
      else find("progress").value = share;
    }
  }

  function cancel(button, job) {
    button.disabled = true;
    return post(`/jobs/${job}/cancel`, {});
  }

  // Where the reader wants to be now: the run, its heading focused.
  function goTo(place) {
    place.scrollIntoView({ block: "start", behavior: still.matches ? "auto" : "smooth" });
    place.querySelector("h2")?.focus({ preventScroll: true });
  }

  // --- The run ---

  function keep(run) {
    const state = new URLSearchParams(location.search);
    state.set("run", run);
    if (location.pathname.startsWith("/systems/")) history.replaceState(null, "", `?${state}`);
  }

  async function follow(run, job, events) {
    leave();
    keep(run);
    training(job);
    const shown = { job, steps: 0, panel: document.querySelector(`[data-run="${run}"]`) };
    if (!shown.panel) wait(run, job);
    let order = Promise.resolve(); // events are shown one after another, though some fetch parts of the page
    const heard = (event, over) => (order = order.then(() => hear(run, shown, event, over)));
    leave = listen(events, heard, undefined, (silent) => tellSilence(shown.panel ?? slot, silent));
  }

  // A run of which nothing is heard is not said to train; what it was comes back with the lab.
  function tellSilence(panel, silent) {
    const state = panel.querySelector("[data-run-state]") ?? panel.querySelector("[role=status]");
    if (!state || silent === (state.dataset.before !== undefined)) return;
    if (silent) {
      state.dataset.before = state.innerHTML;
      state.textContent = `Connection lost: ${lost}`;
    } else {
      state.innerHTML = state.dataset.before; // what our own page had there
      delete state.dataset.before;
    }
    panel.toggleAttribute("data-silent", silent);
    document.querySelectorAll("[data-run-stop], [data-train-stop]").forEach((button) => (button.disabled = silent));
  }

  // What stands for a run until it has begun.
  function wait(run, job) {
    slot.innerHTML = '<section class="run"><h2 tabindex="-1">Run <code></code></h2><p class="run-state" role="status"></p><progress></progress> <button type="button">Stop</button></section>';
    slot.querySelector("code").textContent = run;
    slot.querySelector("[role=status]").textContent = "waits for a free process";
    slot.querySelector("button").addEventListener("click", (event) => cancel(event.target, job));
  }

  async function hear(run, shown, event, over) {
    if (event.event === "started") {
      shown.panel = await showPanel(run);
      shown.steps = event.steps;
      shown.redraw = redrawn(shown.panel, run);
    }
    if (over) training(null);
    if (!shown.panel) {
      const status = slot.querySelector("[role=status]");
      if (event.event === "running") status.textContent = "begins";
      if (over) status.textContent = event.message || "stopped before it began";
      if (over) slot.querySelectorAll("progress, button").forEach((element) => element.remove());
      return;
    }
    const find = (name) => shown.panel.querySelector(`[data-run-${name}]`);
    if (event.step && shown.steps) {
      training(shown.job, event.step / shown.steps);
      if (find("progress")) find("progress").value = event.step / shown.steps;
    }
    if (event.told) find("told").textContent = `step ${event.step}${shown.steps ? ` of ${shown.steps}` : ""}: ${event.told}`;
    if (event.numbers) shown.redraw?.();
    if (event.event === "picture") await addPicture(shown.panel, run, event.step);
    if (event.event === "saved") find("download").hidden = false;
    if (over) await showPanel(run);
  }

  async function showPanel(run) {
    const found = await part(`/runs/${run}/panel`);
    if (!found) return document.querySelector("[data-run]");
    const focused = slot.contains(document.activeElement);
    slot.innerHTML = found;
    ready(slot);
    armPanel(slot.querySelector("[data-run]"));
    if (focused) slot.querySelector("h2").focus({ preventScroll: true });
    return slot.querySelector("[data-run]");
  }

  function armPanel(panel) {
    const { run } = panel.dataset;
    const on = (name, event, act) => panel.querySelector(`[data-run-${name}]`)?.addEventListener(event, act);
    on("stop", "click", (event) => {
      panel.querySelector("[data-run-state]").textContent = "stopping";
      cancel(event.target, panel.dataset.job);
    });
    on("resume", "click", async (event) => {
      event.target.disabled = true;
      panel.querySelector("[data-run-state]").textContent = "begins again";
      const found = await post(`/runs/${run}/resume`, {});
      if (found.error) panel.querySelector("[data-run-told]").textContent = found.error;
      else follow(run, found.job, found.events);
    });
    on("steps", "change", (event) => showPicture(panel, run, Number(event.target.value)));
    on("steps", "input", (event) => {
      panel.querySelector("[data-run-step]").value = steps(panel)[Number(event.target.value)];
    });
  }

  const steps = (panel) => panel.querySelector("[data-run-steps]").dataset.runSteps.split(" ").filter(Boolean);

  async function addPicture(panel, run, step) {
    const range = panel.querySelector("[data-run-steps]");
    const atEnd = range.value === range.max; // else the reader looks at an earlier one
    const known = steps(panel);
    if (!known.includes(String(step))) range.dataset.runSteps = [...known, step].join(" ");
    range.max = String(steps(panel).length - 1);
    panel.querySelector("[data-run-pictures]").hidden = false;
    if (!atEnd) return;
    range.value = range.max;
    await showPicture(panel, run, Number(range.max));
  }

  async function showPicture(panel, run, index) {
    const step = steps(panel)[index];
    const found = await part(`/runs/${run}/picture/${step}`);
    panel.querySelector("[data-run-step]").value = step;
    if (found) panel.querySelector("[data-run-picture]").innerHTML = found;
  }

  // --- Curves: while it trains the same figures as after it, fetched a few times a second ---

  function redrawn(panel, run) {
    const place = panel.querySelector("[data-run-curves]");
    let waiting = false;
    const draw = async () => {
      const found = await part(`/runs/${run}/curve`);
      if (found) place.innerHTML = found;
      waiting = false;
    };
    return () => {
      if (!waiting) setTimeout(draw, 400);
      waiting = true;
    };
  }

  document.querySelectorAll("[data-load]").forEach(load);
  document.querySelectorAll("form[data-train]").forEach(arm);
})();
