// Questions to the lab with the token, which says that this browser opened it: see lemmata/lab/site/session.py.
"use strict";

window.lemmata = (() => {
  const locked = "open the link that lemmata serve printed";
  const lost = "the lab does not answer: is lemmata serve still running?";
  let token = "";
  try {
    token = localStorage.getItem("lemmata-token") ?? "";
  } catch {
    // no storage, no token
  }
  const live = Boolean(token) && document.querySelector("meta[name=lemmata-live]") !== null;

  // `signal` lets go of the question: what was stopped is no fault of the lab.
  async function post(address, data, signal) {
    if (!live) return { error: locked };
    const headers = { "content-type": "application/json", "x-lemmata-token": token };
    try {
      const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify(data), signal });
      return await answer.json();
    } catch {
      return { error: signal?.aborted ? "stopped" : lost };
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

  return { live, locked, lost, post, part };
})();
