// The form of a training and its run, live: see templates/form.html and templates/run.html.
"use strict";

(() => {
  const { live, locked, lost, post, part } = window.lemmata;
  const slot = document.querySelector("[data-run-panel]"); // where a run is shown
  const ends = ["done", "failed", "cancelled"];
  let followed = null; // the stream of the run that is shown

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
      if (panel.dataset.job) follow(panel.dataset.run, panel.dataset.events);
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
      const button = form.querySelector("[data-train-start]");
      button.disabled = true;
      const found = await post(`/systems/${system}/train`, choice());
      button.disabled = false;
      show("problem", found.error);
      if (!found.error) await follow(found.run, found.events);
    });
  }

  // --- The run ---

  function keep(run) {
    const state = new URLSearchParams(location.search);
    state.set("run", run);
    if (location.pathname.startsWith("/systems/")) history.replaceState(null, "", `?${state}`);
  }

  async function follow(run, events) {
    followed?.close();
    keep(run);
    const shown = { curve: null, steps: 0, panel: document.querySelector(`[data-run="${run}"]`) };
    if (!shown.panel) {
      slot.innerHTML = '<p role="status"></p>';
      slot.firstElementChild.textContent = `${run} waits for a free process.`;
      slot.scrollIntoView({ block: "nearest" });
    }
    const source = (followed = new EventSource(events));
    let order = Promise.resolve(); // events are shown one after another, though some fetch parts of the page
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (ends.includes(event.event)) source.close();
      order = order.then(() => hear(run, shown, event));
    };
  }

  async function hear(run, shown, event) {
    if (event.event === "started") {
      shown.panel = await showPanel(run);
      shown.steps = event.steps;
      shown.curve = curve(shown.panel, run);
    }
    if (!shown.panel) {
      if (event.event === "running") slot.firstElementChild.textContent = `${run} begins.`;
      if (event.event === "failed") slot.firstElementChild.textContent = event.message;
      return;
    }
    const find = (name) => shown.panel.querySelector(`[data-run-${name}]`);
    if (event.step && shown.steps && find("progress")) find("progress").value = event.step / shown.steps;
    if (event.told) find("told").textContent = `step ${event.step}${shown.steps ? ` of ${shown.steps}` : ""}: ${event.told}`;
    if (event.numbers) shown.curve?.add(event);
    if (event.event === "picture") await addPicture(shown.panel, run, event.step);
    if (event.event === "saved") find("download").hidden = false;
    if (ends.includes(event.event)) {
      shown.curve?.end();
      await showPanel(run);
    }
  }

  async function showPanel(run) {
    const found = await part(`/runs/${run}/panel`);
    if (!found) return document.querySelector("[data-run]");
    slot.innerHTML = found;
    ready(slot);
    armPanel(slot.querySelector("[data-run]"));
    return slot.querySelector("[data-run]");
  }

  function armPanel(panel) {
    const { run } = panel.dataset;
    const on = (name, event, act) => panel.querySelector(`[data-run-${name}]`)?.addEventListener(event, act);
    on("stop", "click", async (event) => {
      event.target.disabled = true;
      panel.querySelector("[data-run-state]").textContent = "stopping";
      await post(`/jobs/${panel.dataset.job}/cancel`, {});
    });
    on("resume", "click", async (event) => {
      event.target.disabled = true;
      panel.querySelector("[data-run-state]").textContent = "begins again";
      const found = await post(`/runs/${run}/resume`, {});
      if (found.error) panel.querySelector("[data-run-told]").textContent = found.error;
      else follow(run, found.events);
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

  // --- Curves: uPlot where it is there, else our own figures fetched a few times a second ---

  const curve = (panel, run) => (window.uPlot ? drawn(panel) : fetched(panel, run));

  function fetched(panel, run) {
    const place = panel.querySelector("[data-run-curves]");
    let waiting = false;
    const draw = async () => {
      const found = await part(`/runs/${run}/curve`);
      if (found && waiting) place.innerHTML = found;
      waiting = false;
    };
    const add = () => {
      if (waiting) return;
      waiting = true;
      setTimeout(draw, 400);
    };
    return { add, end: () => (waiting = false) };
  }

  function drawn(panel) {
    const place = panel.querySelector("[data-run-curves]");
    const { metric } = panel.dataset;
    const names = metric === "loss" ? ["loss"] : ["loss", metric];
    const ink = (name) => {
      place.style.color = `var(${name})`; // resolves light-dark() for the canvas
      const colour = getComputedStyle(place).color;
      place.style.color = "";
      return colour;
    };
    const line = (label, colour, dash) => ({ label, stroke: () => ink(colour), width: 2, dash, spanGaps: true, points: { show: false } });
    const charts = names.map((name) => {
      const axis = { stroke: () => ink("--figure-ink"), grid: { stroke: () => ink("--rule"), width: 1 } };
      const series = [{ label: "step" }, line("on test examples", "--figure-1", [])];
      if (name === "loss") series.splice(1, 0, line("while training", "--figure-0", []));
      const box = document.createElement("div");
      box.className = "live-curve";
      const data = series.map(() => []);
      return { name, box, data, series, axis, plot: null };
    });
    place.replaceChildren(...charts.map((chart) => chart.box));
    for (const chart of charts) {
      const title = `${chart.name} as training goes on`;
      const options = { title, width: chart.box.clientWidth || 480, height: 240, series: chart.series };
      const scales = { x: { time: false } };
      chart.plot = new window.uPlot({ ...options, scales, axes: [chart.axis, chart.axis] }, chart.data, chart.box);
    }
    const resize = new ResizeObserver(() => charts.forEach((c) => c.plot.setSize({ width: c.box.clientWidth, height: 240 })));
    resize.observe(place);
    const redraw = () => charts.forEach((chart) => chart.plot.redraw());
    document.addEventListener("lemmata:theme", redraw);
    let due = false;
    const draw = () => {
      due = false;
      charts.forEach((chart) => chart.plot.setData(chart.data));
    };
    const add = (event) => {
      for (const chart of charts) {
        const value = event.numbers[chart.name];
        const column = chart.series.findIndex((s) => s.label === (event.event === "step" ? "while training" : "on test examples"));
        if (value === undefined || column < 0) continue;
        const [x] = chart.data;
        const fresh = x[x.length - 1] !== event.step; // a step and its evaluation share their place
        chart.data.forEach((values, k) => (k === 0 ? fresh && values.push(event.step) : fresh && values.push(null)));
        chart.data[column][x.length - 1] = value;
      }
      if (!due) requestAnimationFrame(draw);
      due = true;
    };
    return {
      add,
      end: () => {
        resize.disconnect();
        document.removeEventListener("lemmata:theme", redraw);
        charts.forEach((chart) => chart.plot.destroy());
      },
    };
  }

  document.querySelectorAll("[data-load]").forEach(load);
  document.querySelectorAll("form[data-train]").forEach(arm);
})();
