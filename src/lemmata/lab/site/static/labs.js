// What the labs share: the state in the address, questions to the server, words for what happened, figures to ride on.
"use strict";

window.lemmataLab = (() => {
  const root = document.querySelector("[data-lab]");
  const name = root.dataset.lab;
  const { live, post, part: fetched } = window.lemmata;
  const part = (what) => root.querySelector(`[data-${what}]`);
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const locked = "To change things, open the link that lemmata serve printed.";

  root.querySelectorAll("[data-scripted]").forEach((element) => (element.hidden = false));

  // --- Words ---

  function say(text) {
    part("said").textContent = text;
  }

  function complain(text) {
    part("problem").textContent = text ?? "";
    part("problem").hidden = !text;
  }

  const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
  const short = (value) => String(Number(value.toPrecision(4))).replace("-", "−");

  // --- The state, which is the address ---

  // A page that may only be read, or whose address makes no sense, shows how the lab begins.
  const heeded = live && part("problem").hidden;
  const given = () => (heeded ? Object.fromEntries(new URLSearchParams(location.search)) : {});

  function remember(state) {
    const query = String(new URLSearchParams(state)).replaceAll("%2C", ",");
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
  }

  // --- Questions ---

  // Whether this page may change anything; if not, it says why.
  function may() {
    if (!live) complain(locked);
    return live;
  }

  // One question at a time. Every answer is shown, so that nothing stands still while a slider is dragged; of the
  // questions that come meanwhile only the newest is asked. `heard` is told whether another is on its way.
  function asker(heard) {
    let waiting = null;
    let busy = false;
    return async (state) => {
      waiting = state;
      if (busy) return;
      busy = true;
      root.setAttribute("aria-busy", "true");
      while (waiting) {
        const asked = waiting;
        waiting = null;
        const answer = await post(`/labs/${name}/show`, { state: asked });
        complain(answer.error);
        if (answer.error) continue;
        show(answer.figures);
        tell(answer);
        heard(answer, waiting === null);
      }
      busy = false;
      root.setAttribute("aria-busy", "false");
    };
  }

  function tell(answer) {
    if (answer.python) part("python").textContent = answer.python;
  }

  function show(figures) {
    for (const [what, drawn] of Object.entries(figures ?? {})) {
      const place = root.querySelector(`[data-figure="${what}"]`);
      if (!place) continue;
      const open = place.querySelector("details")?.open;
      place.innerHTML = drawn; // the lab's own figures, every text in them escaped
      if (open && place.querySelector("details")) place.querySelector("details").open = true;
    }
  }

  // --- Drawing ---

  function make(tag, attributes = {}, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  // A ball on the first curve of a figure: it moves from vertex to vertex, for the curve's vertices are the steps.
  function rider(what) {
    const drawings = [...root.querySelectorAll(`[data-figure="${what}"] svg`)]; // one for wide screens, one for narrow
    const rails = drawings.map((svg) => {
      const curves = [...svg.querySelectorAll(".s0 path[fill=none]")].map((path) => path.getAttribute("d"));
      const curve = curves.find((d) => d.includes("L")) ?? "";
      return { svg, places: curve.slice(1).split("L").map((pair) => pair.split(" ").map(Number)) };
    });
    return (step) => {
      for (const { svg, places } of rails) {
        const [x, y] = places[Math.max(0, Math.min(step, places.length - 1))];
        if (!Number.isFinite(y)) continue;
        const ball = svg.querySelector(".rider") ?? svg.appendChild(make("circle", { class: "rider", r: 7 }));
        ball.setAttribute("cx", x);
        ball.setAttribute("cy", y);
        ball.toggleAttribute("hidden", step < 0);
      }
    };
  }

  // --- Motion: steps from one number to another in some seconds; at once for readers who want no motion ---

  function player(step, ended = () => {}) {
    let frame = 0;
    const stop = () => {
      if (!frame) return;
      cancelAnimationFrame(frame);
      frame = 0;
      ended();
    };
    const play = (from, to, seconds) => {
      stop();
      if (still.matches || seconds <= 0) {
        step(to);
        return ended();
      }
      const begun = performance.now();
      const move = (now) => {
        const share = Math.min(1, (now - begun) / 1000 / seconds);
        step(Math.round(from + share * (to - from)));
        frame = share < 1 ? requestAnimationFrame(move) : 0;
        if (!frame) ended();
      };
      frame = requestAnimationFrame(move);
    };
    return { play, stop, playing: () => frame !== 0 };
  }

  function press(acts) {
    root.querySelectorAll("[data-act]").forEach((button) => {
      const act = acts[button.dataset.act];
      if (act && button.type !== "submit") button.addEventListener("click", act);
    });
  }

  const first = JSON.parse(root.dataset.shown || "{}");
  return { root, name, part, first, live, still, given, remember, post, fetched, asker, say, complain, may, show, make, rider, player, press, count, short };
})();
