// The regions lab: the lines of a first layer are dragged, and the server cuts the plane anew.
"use strict";

(() => {
  const lab = window.lemmataLab;
  const { part, make, say, short } = lab;
  const [REACH, MOST, START] = [1, 8, "0.3,0.4;-0.5,0.2;0.1,-0.4;-0.2,-0.3;0.45,-0.1"];
  let points = [];
  let chosen = 0;

  const read = (text) => text.split(";").map((pair) => pair.split(",").map(Number));
  const tidy = (value) => Number(Math.max(-REACH, Math.min(REACH, value)).toFixed(3)) + 0;
  const put = (index, x, y) => (points[index] = [tidy(x), tidy(y)]);
  const written = () => points.map((place) => place.join(",")).join(";");
  const folds = () => lab.get("kind") === "folding";
  const place = ([x, y]) => `line ${short(Math.hypot(x, y), 2)} from the middle, at ${Math.round((180 * Math.atan2(y, x)) / Math.PI)}°`;
  const state = () => ({ ...lab.state(), ...(written() === START ? {} : { points: written() }) });

  // --- The plane ---

  const plane = lab.plane({
    class: "plane regions",
    "aria-roledescription": "plane cut by lines",
    "aria-label": "Regions of a network in the plane. N chooses the next line, arrows move it, plus adds one, Delete removes it.",
    reach: REACH,
    grip: 0.1,
    layers: ["ground", "marks"],
    places: () => (folds() ? [] : points),
    grab: choose,
    drag: (...moved) => (put(...moved), change()),
    drop(index, x, y, moved) {
      if (Math.max(Math.abs(x), Math.abs(y)) > REACH + 0.03) remove(index);
      else if (moved) change(`Moved: ${place(points[index])}.`);
      else say(`Chosen: ${place(points[index])}.`);
    },
    tap: add,
    key(key, way, finely) {
      if (folds()) return false;
      if (way) {
        const size = finely ? 0.005 : 0.05;
        put(chosen, points[chosen][0] + size * way[0], points[chosen][1] + size * way[1]);
        change(`${place(points[chosen])}.`);
      } else if (key.toLowerCase() === "n") {
        choose((chosen + 1) % points.length);
        say(`Line ${chosen + 1} of ${points.length}: ${place(points[chosen])}.`);
      } else if (key === "+") add(0.2, -0.6);
      else if (key === "Delete" || key === "Backspace") remove(chosen);
      else return false;
    },
  });

  function draw() {
    const look = (index) => ({ class: `plus${index === chosen ? " chosen" : ""}`, "data-index": index });
    const dots = folds() ? [] : points.map((p, k) => lab.dot(true, p, k === chosen ? 0.05 : 0.04, look(k), place(p)));
    plane.groups.marks.replaceChildren(...dots);
  }

  function choose(index) {
    chosen = index;
    draw();
  }

  // --- What came of it ---

  function show({ polygons, count, words }, newest = true, news = "") {
    const area = ({ corners, shade }) => make("path", { d: `M${corners.map(([x, y]) => `${x} ${-y}`).join("L")}z`, "fill-opacity": 0.06 + 0.7 * shade });
    plane.groups.ground.replaceChildren(...polygons.map(area));
    part("count").textContent = count.toLocaleString("en");
    part("compared").textContent = words;
    draw();
    if (!newest) return;
    say(news || `${count} regions in the square.`);
    lab.remember(state());
  }

  const ask = lab.asker(show);

  function change(words = "") {
    if (!lab.may()) return;
    draw();
    ask(state(), words);
  }

  function add(x, y) {
    if (folds() || points.length >= MOST) return say(folds() ? "A network that folds has its own lines." : `There is room for ${MOST} lines.`);
    if (!lab.may()) return;
    chosen = points.length;
    put(chosen, x, y);
    change(`Added: ${place(points[chosen])}.`);
  }

  function remove(index) {
    if (points.length < 2) return say("One line must stay.");
    if (lab.may()) points.splice(index, 1);
    chosen = Math.min(chosen, points.length - 1);
    change("Removed.");
  }

  // --- To begin with ---

  part("picture").replaceChildren(plane.svg);
  lab.controls((name) => {
    if (!name) [points, chosen] = [read(START), 0];
    change();
  });
  points = read(lab.given().points ?? START);
  if (lab.first.polygons) show(lab.first);
  else if (lab.live) ask(state());
})();
