// The audit of a run: asked for by a button, told while it goes on, and shown.
"use strict";

(() => {
  const { live, locked, lost, post, part, follow } = window.lemmata;
  const place = document.querySelector("[data-audit]");
  const run = place.dataset.audit;

  async function load() {
    const found = live ? await part(`/runs/${run}/audit/report`) : "";
    if (!found) return (place.querySelector("[role=status]").textContent = live ? "there is no such run" : locked);
    place.innerHTML = found; // our own page, every text in it escaped
    place.querySelectorAll("[data-copy]").forEach((button) => (button.hidden = false));
    const find = (name) => place.querySelector(`[data-audit-${name}]`);
    const say = (text) => (find("said").textContent = text);
    const going = (on) => {
      find("start").hidden = on;
      find("going").hidden = !on;
    };
    find("start").addEventListener("click", async () => {
      going(true);
      say("waits for a free process");
      const begun = await post(`/runs/${run}/audit`, {});
      if (begun.error) {
        going(false);
        return say(begun.error);
      }
      find("stop").onclick = (event) => {
        event.target.disabled = true;
        post(`/jobs/${begun.job}/cancel`, {});
      };
      follow(begun.events, (event, over) => hear(event, over, say, going), () => say(lost), (silent) => silent && say(lost));
    });
  }

  async function hear(event, over, say, going) {
    if (event.stage) say(event.stage);
    if (!over) return;
    if (event.event === "done") {
      await load();
      place.querySelector("[data-audit-said]").textContent = "It is done.";
    } else {
      going(false);
      say(event.message || "stopped");
    }
  }

  load();
})();
