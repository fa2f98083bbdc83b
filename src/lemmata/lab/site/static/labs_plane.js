// Pictures in SVG that are touched: by mouse, finger and keys. One unit is as long across as upwards.
"use strict";

((lab) => {
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

  lab.make = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // A drawing that takes the focus. `down(place, event)` begins a gesture, unless it says false; `move(places)` has the
  // places since the last one; `up(place)` ends it, without a place if it was broken off. `key(name, way)` is told of
  // every key, arrows with the way they go; what it does not know it answers with false.
  lab.touched = (attributes, { down, move, up, key }) => {
    const svg = lab.make("svg", { tabindex: 0, role: "application", ...attributes });
    const where = (event) => {
      const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [x, y];
    };
    let held = false;
    svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || down(where(event), event) === false) return;
      held = true;
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
      svg.focus({ preventScroll: true, focusVisible: false });
    });
    svg.addEventListener("pointermove", (event) => {
      if (!held) return;
      const passed = event.getCoalescedEvents?.() ?? [];
      move((passed.length ? passed : [event]).map(where));
    });
    for (const end of ["pointerup", "pointercancel"]) {
      svg.addEventListener(end, (event) => {
        if (!held) return;
        held = false;
        up(end === "pointerup" ? where(event) : null);
      });
    }
    svg.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (key(event.key, ways[event.key], event.shiftKey) === false) return;
      event.preventDefault();
      event.stopPropagation();
    });
    return svg;
  };

  // A mark of one of two classes, told apart by shape as well as colour, with its words under the pointer.
  lab.dot = (first, [x, y], size, attributes, words) => {
    const round = { cx: x, cy: -y, r: size };
    const square = { x: x - 0.88 * size, y: -y - 0.88 * size, width: 1.76 * size, height: 1.76 * size };
    return lab.make(first ? "circle" : "rect", { ...(first ? round : square), ...attributes }, lab.make("title", {}, words));
  };

  // The square of the plane from -reach to reach, y upwards, with points to drag. `places()` are those of the points;
  // `drag(index, x, y)` moves one, `drop(index, x, y, moved)` ends that, `tap(x, y)` is a click beside them all. With
  // `snap`, arrow keys move a cross of their own, of which `crossed(x, y)` is told.
  lab.plane = ({ reach, grip, layers, fold, snap, places, grab, drag, drop, tap, crossed, key, ...attributes }) => {
    const edge = 0.05 * reach;
    const groups = Object.fromEntries([...layers, "cursor"].map((name) => [name, lab.make("g", { class: name })]));
    let held = null;
    let cross = [0, 0];

    function nearest(x, y, within = grip) {
      const distances = places().map(([u, v]) => Math.hypot(u - x, v - (fold ? Math.abs(y) : y)));
      const index = distances.indexOf(Math.min(...distances));
      return index >= 0 && distances[index] <= within ? index : -1;
    }

    function drawCross() {
      const d = `M${cross[0] - 0.45} ${-cross[1]}h.9M${cross[0]} ${-cross[1] - 0.45}v.9`;
      groups.cursor.replaceChildren(...(snap && svg.matches(":focus-visible") ? [lab.make("path", { d })] : []));
    }

    const box = [-reach - edge, -reach - edge, 2 * (reach + edge), 2 * (reach + edge)];
    const svg = lab.touched({ viewBox: box.join(" "), ...attributes }, {
      down([x, y], event) {
        held = { index: nearest(x, -y, event.pointerType === "mouse" ? grip : 1.7 * grip), moved: false };
        if (held.index >= 0) grab?.(held.index);
      },
      move(passed) {
        const [x, y] = passed.at(-1);
        if (held.index >= 0 && lab.may()) held.moved = drag(held.index, x, -y) !== false || held.moved;
      },
      up(place) {
        const { index, moved } = held;
        if (place && index >= 0) drop(index, place[0], -place[1], moved);
        else if (place && Math.max(...place.map(Math.abs)) <= reach + edge) tap(place[0], -place[1]);
      },
      key(name, way, finely) {
        if (!way || !snap) return key(name, way, finely, cross);
        cross = cross.map((c, i) => snap(c + (finely ? 0.125 : 0.5) * way[i]));
        drawCross();
        crossed(...cross);
      },
    });
    for (const event of ["focus", "blur"]) svg.addEventListener(event, drawCross);
    svg.append(...Object.values(groups));
    return { svg, groups, nearest };
  };
})(window.lemmataLab);
