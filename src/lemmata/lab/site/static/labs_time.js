// A run that is played forwards and backwards: its slider, its buttons, and a ball that rides on its figure.
"use strict";

((lab) => {
  // Steps from one number to another in some seconds; at once for readers who want no motion.
  function player(step, ended) {
    let frame = 0;
    const stop = () => {
      if (!frame) return;
      cancelAnimationFrame(frame);
      frame = 0;
      ended();
    };
    const play = (from, to, seconds) => {
      stop();
      if (lab.still.matches || seconds <= 0) {
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

  // `show(step)` draws a step; where the reader has come to one, `told(step)` is said and the address has it beside what
  // `state()` gives. `seconds(steps)` says how long to play. The page has the slider data-at and the buttons
  // data-act="play", "next" and "back", as far as it wants them.
  lab.timeline = ({ show, told, state, seconds }) => {
    const [slider, button] = [lab.part("at"), lab.part("act=play")];
    const word = button.textContent;
    let [at, end] = [0, 0];

    function to(step) {
      at = Math.max(0, Math.min(step, end));
      slider.value = at;
      show(at);
    }

    function rest(news = "") {
      lab.say(`${news} ${told(at)}`.trim());
      lab.remember({ ...state(), ...(at ? { at } : {}) });
    }

    const moving = player(to, () => {
      button.textContent = word;
      rest();
    });

    function go(step) {
      moving.stop();
      to(step);
      rest();
    }

    function play() {
      if (moving.playing()) return moving.stop();
      const from = at === end ? 0 : at;
      moving.play(from, end, end > from ? seconds(end - from) : 0);
      if (moving.playing()) button.textContent = "Pause";
    }

    function renew(length, step) {
      end = length;
      slider.max = end;
      to(step);
    }

    slider.addEventListener("input", () => go(Number(slider.value)));
    lab.press({ play, next: () => go(at + 1), back: () => go(0) });
    return { go, play, renew, rest, stop: moving.stop, at: () => at, end: () => end };
  };

  // A ball on the first curve of a figure: it moves from vertex to vertex, for the curve's vertices are the steps.
  lab.rider = (what) => (step) => {
    for (const svg of lab.root.querySelectorAll(`[data-figure="${what}"] svg`)) {
      const curves = [...svg.querySelectorAll(".s0 path[fill=none]")].map((path) => path.getAttribute("d"));
      const places = (curves.find((d) => d.includes("L")) ?? "M").slice(1).split("L").map((pair) => pair.split(" ").map(Number));
      const [x, y] = places[Math.max(0, Math.min(step, places.length - 1))];
      if (!Number.isFinite(y)) continue;
      const ball = svg.querySelector(".rider") ?? svg.appendChild(lab.make("circle", { class: "rider", r: 7 }));
      ball.setAttribute("cx", x);
      ball.setAttribute("cy", y);
      ball.toggleAttribute("hidden", step < 0);
    }
  };
})(window.lemmataLab);
