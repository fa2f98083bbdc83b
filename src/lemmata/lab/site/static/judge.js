// Running the whole check of a claim again, from its page: the truth and every lie, with progress and a way to stop.
"use strict";

(() => {
  const { live, lost, post } = window.lemmata;
  if (!live) return;

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
      if (long && !confirm("This check takes minutes. Run it now?")) return;
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
      source.onerror = () => say(lost);
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
    // The page as it is now, with the stage as the reader left it.
    const text = await (await fetch(location.href, { headers: { accept: "text/html" } })).text();
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("article.claim");
    const old = document.querySelector("article.claim");
    const stage = old.querySelector("[data-stage]");
    if (stage) fresh.querySelector("[data-stage]")?.replaceWith(stage);
    old.replaceWith(fresh);
    fresh.querySelectorAll("[data-copy], [data-copy-latex]").forEach((button) => (button.hidden = false));
    document.dispatchEvent(new Event("htmx:afterSettle")); // formulas that only the browser can set
    const form = fresh.querySelector("form[data-judge]");
    judging(form);
    form.querySelector("[data-judge-status]").textContent = `just now: ${verdict}`;
    form.querySelector("[data-judge-start]").focus({ preventScroll: true });
  }

  document.querySelectorAll("form[data-judge]").forEach(judging);
})();
