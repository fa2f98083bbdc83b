// Questions to the lab with the token, which says that this browser opened it: see lemmata/lab/site/session.py.
"use strict";

window.lemmata = (() => {
  const locked = "open the link that lemmata serve printed";
  const lost = "the lab does not answer: is lemmata serve still running?";
  const ends = ["done", "failed", "cancelled"];
  let token = "";
  try {
    token = localStorage.getItem("lemmata-token") ?? "";
  } catch {
    // no storage, no token
  }
  const live = Boolean(token) && document.querySelector("meta[name=lemmata-live]") !== null;

  // The answer to a question; { error } if there is none. A `signal` that aborts ends the work at the server, too.
  async function post(address, data, signal) {
    if (!live) return { error: locked };
    const headers = { "content-type": "application/json", "x-lemmata-token": token };
    try {
      const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(data), signal });
      return await answer.json();
    } catch {
      return signal?.aborted ? { error: "stopped", stopped: true } : { error: lost };
    }
  }

  // A part of a page, or nothing.
  async function part(address) {
    try {
      const answer = await fetch(address, { headers: { accept: "text/html", "x-lemmata-token": token } });
      return answer.ok ? await answer.text() : "";
    } catch {
      return "";
    }
  }

  // Run `ask(signal)`. If that takes longer than half a second, `wait` gets a function that cancels it; at the end null.
  async function patiently(ask, wait) {
    const control = new AbortController();
    const clock = setTimeout(() => wait(() => control.abort()), 500);
    try {
      return await ask(control.signal);
    } finally {
      clearTimeout(clock);
      wait(null);
    }
  }

  // The news of a job, each given to `hear`, until it is over. Gives back what stops listening. `silent(true)` says that
  // the lab does not answer any more, `silent(false)` that it does again.
  function follow(address, hear, gone = () => {}, silent = () => {}) {
    const source = new EventSource(address);
    source.onopen = () => silent(false);
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (ends.includes(event.event)) source.close();
      hear(event, ends.includes(event.event));
    };
    source.onerror = () => {
      silent(true);
      if (source.readyState === EventSource.CLOSED) gone();
    };
    return () => source.close();
  }

  return { live, locked, lost, post, part, patiently, follow };
})();
