// The shattering lab: points are dragged, and every labelling is a button that shows who has it.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short } = lab;
  const [REACH, MOST, START] = [1, 5, "-0.5,-0.3;0.5,-0.2;0,0.5"];
  const NAMES = { "half-spaces": "line", discs: "disc", rectangles: "box" };
  let points = [];
  let labels = "";
  let [chosen, shown] = [0, 1];

  const read = (text) => text.split(";").map((pair) => pair.split(",").map(Number));
  const tidy = (value) => Number(Math.max(-REACH, Math.min(REACH, value)).toFixed(2)) + 0;
  const put = (index, x, y) => (points[index] = [tidy(x), tidy(y)]);
  const written = () => points.map((place) => place.join(",")).join(";");
  const place = (index) => `point ${index + 1} at ${points[index].map((v) => short(v, 2)).join(", ")}`;
  const state = () => ({ ...lab.state(), ...(written() === START ? {} : { points: written() }), ...(shown === 1 ? {} : { shown: String(shown) }) });

  // --- The plane ---

  const plane = lab.plane({
    class: "plane shattering",
    "aria-roledescription": "plane with points",
    "aria-label": "Points that are labelled. N chooses the next point, arrows move it, plus adds one, Delete removes it.",
    reach: REACH,
    grip: 0.12,
    layers: ["ground", "marks"],
    places: () => points,
    grab: choose,
    drag: (...moved) => (put(...moved), change()),
    drop(index, x, y, moved) {
      if (Math.max(Math.abs(x), Math.abs(y)) > REACH + 0.03) remove(index);
      else if (moved) change(`Moved: ${place(index)}.`);
      else say(`Chosen: ${place(index)}.`);
    },
    tap: add,
    key(key, way, finely) {
      if (way) {
        const size = finely ? 0.01 : 0.05;
        put(chosen, points[chosen][0] + size * way[0], points[chosen][1] + size * way[1]);
        change(`Moved: ${place(chosen)}.`);
      } else if (key.toLowerCase() === "n") {
        choose((chosen + 1) % points.length);
        say(`Chosen: ${place(chosen)}.`);
      } else if (key === "+") add(0.2, -0.6);
      else if (key === "Delete" || key === "Backspace") remove(chosen);
      else return false;
    },
  });

  function draw() {
    const yes = (index) => labels[index] === "1";
    const look = (index) => ({ class: `${yes(index) ? "plus" : "minus"}${index === chosen ? " chosen" : ""}`, "data-index": index });
    const dot = (p, k) => lab.dot(yes(k), p, k === chosen ? 0.06 : 0.05, look(k), `${place(k)}, ${yes(k) ? "yes" : "no"}`);
    plane.groups.marks.replaceChildren(...points.map(dot));
  }
  function choose(index) {
    chosen = index;
    draw();
  }

  // What the classifier says yes to, cut at the rim of the square.
  function shape(area) {
    const rim = 1.05 * REACH;
    const square = [[-rim, -rim], [rim, -rim], [rim, rim], [-rim, rim]];
    const path = (corners) => make("path", { class: "plus-side", d: corners.length ? `M${corners.map(([x, y]) => `${x} ${-y}`).join("L")}z` : "M0 0" });
    if (!area || area.kind === "nothing") return [];
    if (area.kind === "everything") return [path(square)];
    if (area.kind === "disc") return [make("circle", { class: "plus-side", cx: area.centre[0], cy: -area.centre[1], r: area.radius })];
    if (area.kind === "box") return [path([area.low, [area.high[0], area.low[1]], area.high, [area.low[0], area.high[1]]])];
    const [a, b, c] = area.weights;
    const value = ([x, y]) => a * x + b * y + c;
    const inside = square.flatMap((corner, k) => {
      const next = square[(k + 1) % 4];
      const [u, v] = [value(corner), value(next)];
      const crossing = u >= 0 === v >= 0 ? [] : [corner.map((from, i) => from + (u / (u - v)) * (next[i] - from))];
      return [...(u >= 0 ? [corner] : []), ...crossing];
    });
    return [path(inside)];
  }

  // --- The labellings ---

  const words = (text) => [...text].map((label) => (label === "1" ? "●" : "○")).join("");
  const spoken = (text) => [...text].map((label) => (label === "1" ? "yes" : "no")).join(" ");

  function button(text, index, realised, pressed) {
    const named = { ariaPressed: String(pressed), ariaLabel: `${spoken(text)}${realised ? "" : ", none has it"}` };
    const element = lab.element("button", { type: "button", className: realised ? "" : "missing", ...named }, words(text));
    element.addEventListener("click", () => ((shown = index), change()));
    return element;
  }
  function show({ every, realised, area, count, largest, shown: index }, newest = true, news = "") {
    labels = every[index];
    plane.groups.ground.replaceChildren(...shape(area));
    const held = part("labellings").contains(document.activeElement);
    part("labellings").replaceChildren(...every.map((text, k) => button(text, k, realised[k], k === index)));
    if (held) part("labellings").children[index].focus();
    part("count").textContent = count;
    part("every").textContent = every.length;
    const all = count === every.length;
    const elsewhere = largest === every.length ? "other places are shattered" : `no ${points.length} points have more than ${largest}`;
    part("compared").textContent = all ? "shattered" : elsewhere;
    draw();
    if (!newest) return;
    const name = NAMES[lab.get("by")];
    say(`${news}${news && " "}${realised[index] ? `A ${name} says ${spoken(labels)}.` : `No ${name} says ${spoken(labels)}.`}`);
    lab.remember(state());
  }
  const ask = lab.asker(show);

  function change(text = "") {
    if (!lab.may()) return;
    shown = Math.min(shown, 2 ** points.length - 1);
    draw();
    ask(state(), text);
  }

  function add(x, y) {
    if (points.length >= MOST) return say(`There is room for ${MOST} points.`);
    if (!lab.may()) return;
    chosen = points.length;
    put(chosen, x, y);
    change(`Added: ${place(chosen)}.`);
  }

  function remove(index) {
    if (points.length < 2) return say("One point must stay.");
    if (lab.may()) points.splice(index, 1);
    chosen = Math.min(chosen, points.length - 1);
    change("Removed.");
  }

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  lab.controls((name) => {
    if (!name) [points, chosen, shown] = [read(START), 0, 1];
    change();
  });
  points = read(lab.given().points ?? START);
  shown = Number(lab.given().shown ?? 1);
  if (lab.first.every) show(lab.first);
  else if (lab.live) ask(state());
})();
