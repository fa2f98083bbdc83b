// Points of two classes in the square of the plane, and a line between them that glides from one place to the next.
"use strict";

((lab) => {
  const { make } = lab;

  // --- Points { sign, x, y } on a grid of eighths, which are exact in binary; as text, p1.5,2 and n0,-1 ---

  lab.classes = (reach) => {
    const point = ([, sign, x, y]) => ({ sign: sign === "p" ? 1 : -1, x: +x, y: +y });
    const place = (p) => `(${lab.short(p.x)}, ${lab.short(p.y)})`;
    const named = (p) => `class ${p.sign > 0 ? "+1" : "−1"}`;
    const look = (p) => (p.sign > 0 ? "plus" : "minus");
    const value = ([a, b, c], p) => a * p.x + b * p.y + c;
    return {
      place, named, look, value,
      read: (text) => [...text.matchAll(/([pn])([-.\d]+),([-.\d]+)/g)].map(point),
      written: (points) => points.map((p) => `${p.sign > 0 ? "p" : "n"}${p.x},${p.y}`).join(""),
      snap: (value) => Math.max(-reach, Math.min(reach, Math.round(value * 8) / 8)) + 0,
      // Hollow where the weights [a, b, c] have it on the wrong side, or on neither.
      mark(p, index, weights) {
        const wrong = p.sign * value(weights, p) <= 0;
        const words = `${named(p)} at ${place(p)}${wrong ? ", on the wrong side" : ""}`;
        return lab.dot(p.sign > 0, [p.x, p.y], 0.17, { class: `${look(p)}${wrong ? " wrong" : ""}`, "data-index": index }, words);
      },
    };
  };

  // --- The line ---

  const path = (places) => places.map(([x, y]) => `${x.toFixed(3)} ${(-y).toFixed(3)}`).join("L");

  // Where a x + b y + c = 0 meets the rim, and the part of the square where it is positive.
  function cut([a, b, c], reach) {
    const corners = [[-reach, -reach], [reach, -reach], [reach, reach], [-reach, reach]];
    const value = ([x, y]) => a * x + b * y + c;
    const [ends, inside] = [[], []];
    corners.forEach((corner, k) => {
      const next = corners[(k + 1) % 4];
      const [u, v] = [value(corner), value(next)];
      if (u >= 0) inside.push(corner);
      if (u >= 0 === v >= 0) return;
      const crossing = corner.map((from, i) => from + (u / (u - v)) * (next[i] - from));
      ends.push(crossing);
      inside.push(crossing);
    });
    return { ends, inside };
  }

  // From the middle of the line to the side that the weights call +1.
  function arrow([a, b], [from, to]) {
    const [u, v] = [a / Math.hypot(a, b), b / Math.hypot(a, b)];
    const middle = from.map((start, i) => (start + to[i]) / 2);
    const tip = [middle[0] + 0.9 * u, middle[1] + 0.9 * v];
    const barb = (side) => [tip[0] - 0.28 * u + side * 0.14 * v, tip[1] - 0.28 * v - side * 0.14 * u];
    return make("path", { class: "arrow", d: `M${path([middle, tip])}M${path([barb(-1), tip, barb(1)])}` });
  }

  // Draws lines with weights [a, b, c] into the groups `sides` and `lines` of a plane; `before` stays as a trace. It
  // glides from one to the next, unless the reader wants no motion or steps follow fast.
  lab.line = ({ sides, lines }, reach) => {
    let [shown, frame, last] = [[0, 0, 0], 0, 0];
    const nothing = (weights) => weights.every((w) => w === 0);

    function draw(weights, before) {
      const { ends, inside } = cut(weights, reach);
      const old = before ? cut(before, reach).ends : [];
      const plus = inside.length ? `M${path(inside)}z` : "M0 0";
      const looks = { "minus-side": `M${-reach} ${-reach}H${reach}V${reach}H${-reach}z`, "paper-side": plus, "plus-side": plus };
      const halves = Object.entries(looks).map(([look, d]) => make("path", { class: look, d }));
      sides.replaceChildren(...(nothing(weights) ? [] : halves));
      lines.replaceChildren();
      if (old.length === 2) lines.append(make("path", { class: "old-line", d: `M${path(old)}` }));
      if (ends.length === 2) lines.append(make("path", { class: "line", d: `M${path(ends)}` }), arrow(weights, ends));
    }

    return (weights, before) => {
      cancelAnimationFrame(frame);
      const [from, begun] = [shown, performance.now()];
      const still = lab.still.matches || begun - last < 150 || nothing(from) || nothing(weights);
      last = begun;
      const turn = (now) => {
        const share = Math.min(1, Math.max(0, now - begun) / 240);
        shown = weights.map((w, i) => from[i] + (1 - (1 - share) ** 3) * (w - from[i]));
        draw(share < 1 ? shown : weights, before);
        if (share < 1) frame = requestAnimationFrame(turn);
      };
      turn(still ? Infinity : begun);
    };
  };
})(window.lemmataLab);
