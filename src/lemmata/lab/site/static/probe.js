// The check, run from the page: the slider from truth to lie (templates/probe.html), and judging again (claim.html).
"use strict";

(() => {
  const { live, post } = window.lemmata;
  if (!live) return; // the form asks for another page, as without JavaScript

  // --- The slider: on release the same check runs with that value ---

  const short = (value) => String(Number(Number(value).toPrecision(5)));

  function arm(form) {
    const part = (name) => form.querySelector(`[data-probe-${name}]`);
    const chosen = () => new FormData(form).get("value");
    let shown = part("verdict").textContent.trim() ? chosen() : null; // what the verdict on the page belongs to
    let wanted = shown; // the value of the last release
    let running = false; // one check at a time; what is wanted meanwhile comes next, what lies between never

    function look() {
      const value = chosen();
      const range = form.querySelector("input[type=range]");
      if (part("output")) part("output").value = short(value);
      range?.setAttribute("aria-valuetext", `${form.dataset.argument} = ${short(value)}`);
      form.classList.toggle("stale", shown !== null && (running || value !== shown));
      form.setAttribute("aria-busy", String(running));
    }

    async function run() {
      if (running) return;
      running = true;
      look();
      let value;
      let answer;
      do {
        value = wanted;
        answer = await ask(form, value);
      } while (value !== wanted); // an answer that is out of date is not shown
      running = false;
      fill(part, answer);
      shown = answer.error ? null : value;
      remember(form, value);
      look();
    }

    function want() {
      wanted = chosen();
      run();
    }

    form.addEventListener("input", look);
    form.addEventListener("change", want);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      want();
    });
    look();
  }

  function ask({ dataset }, value) {
    return post(`/claim/${dataset.claim}/probe`, { lie: Number(dataset.lie), value: Number(value), seed: 0 });
  }

  function fill(part, answer) {
    // What the lab sends is its own: marks and figures, with every text in them escaped.
    part("verdict").innerHTML = answer.error ? "" : answer.verdict;
    part("evidence").textContent = answer.error ?? answer.evidence;
    const figure = part("figure");
    if (figure) {
      figure.innerHTML = answer.figure ?? "";
      figure.hidden = !answer.figure;
    }
  }

  function remember(form, value) {
    if (location.pathname !== `/claim/${form.dataset.claim}`) return;
    const state = new URLSearchParams(location.search);
    state.set("lie", form.dataset.lie);
    state.set("value", value);
    history.replaceState(null, "", `?${state}${location.hash}`);
  }

  // --- Judging again ---

  function judging(form) {
    const { claim, cost } = form.dataset;
    const find = (name) => form.querySelector(`[data-judge-${name}]`);
    const say = (text) => (find("status").textContent = text);
    let job = "";
    let unwanted = false; // stopped before the server had given the job its name

    const cancel = () => post(`/jobs/${job}/cancel`, {});

    function busy(now) {
      find("start").disabled = now;
      find("cancel").hidden = find("progress").hidden = !now;
      find("cancel").disabled = false;
    }

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const long = cost === "long";
      if (long && !confirm("This check takes minutes. Judge it now?")) return;
      busy(true);
      job = "";
      unwanted = false;
      say("waits for a free process");
      find("progress").removeAttribute("value");
      const found = await post(`/claim/${claim}/judge`, { seed: 0, long });
      if (found.error) {
        busy(false);
        say(found.error);
        return;
      }
      job = found.job;
      const source = new EventSource(found.events);
      source.onmessage = (message) => hear(JSON.parse(message.data), source);
      if (unwanted) cancel();
    });

    find("cancel").addEventListener("click", () => {
      find("cancel").disabled = true;
      say("stopping");
      if (job) cancel();
      else unwanted = true;
    });

    async function hear(event, source) {
      if (event.event === "progress") {
        say(event.stage);
        find("progress").max = event.of;
        find("progress").value = event.done;
      }
      if (!["done", "failed", "cancelled"].includes(event.event)) return;
      source.close();
      busy(false);
      if (event.event === "done") await renew(event.result.verdict);
      else say(event.event === "failed" ? event.message : "stopped; the verdict is as it was");
    }
  }

  async function renew(verdict) {
    // The page as it is now, with the sliders where the reader left them.
    const text = await (await fetch(location.href, { headers: { accept: "text/html" } })).text();
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("article.claim");
    const old = document.querySelector("article.claim");
    for (const form of old.querySelectorAll("form[data-probe]")) {
      fresh.querySelector(`form[data-probe][data-lie="${form.dataset.lie}"]`)?.replaceWith(form);
    }
    old.replaceWith(fresh);
    fresh.querySelectorAll("[data-copy], [data-copy-latex]").forEach((button) => (button.hidden = false));
    document.dispatchEvent(new Event("htmx:afterSettle")); // formulas that only the browser can set
    const form = fresh.querySelector("form[data-judge]");
    judging(form);
    form.querySelector("[data-judge-status]").textContent = `judged just now: ${verdict}`;
    form.querySelector("[data-judge-start]").focus({ preventScroll: true });
  }

  const probes = document.querySelectorAll("form[data-probe]");
  probes.forEach(arm);
  document.querySelectorAll("form[data-judge]").forEach(judging);
  // The first answer should be as quick as the rest: have the checks imported before a slider is touched.
  new Set([...probes].map((form) => form.dataset.claim)).forEach((claim) => fetch(`/claim/${claim}/dials`).catch(() => {}));
})();
