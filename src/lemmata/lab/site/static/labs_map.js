// A map of the plane on a canvas: how likely the second of two classes is, the border between them, and points on top.
"use strict";

((lab) => {
  const css = (rgb) => `rgb(${rgb.join(" ")})`;

  function colours() {
    const marker = lab.element("span");
    lab.root.append(marker);
    const board = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const read = (name) => {
      marker.style.color = `var(${name})`; // resolves light-dark() for the canvas
      board.fillStyle = getComputedStyle(marker).color;
      board.fillRect(0, 0, 1, 1);
      return [...board.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    };
    const found = { paper: read("--paper"), ink: read("--ink"), classes: [read("--figure-0"), read("--figure-1")] };
    marker.remove();
    return found;
  }

  // `draw({ side, box, cells })`: two hexadecimal digits a cell, rows upwards, between the middles of whose rims `box`
  // lies. `groups` are lists of points [x, y, class] with their size; a point that is on the wrong side is hollow.
  lab.map = () => {
    const canvas = lab.element("canvas", { className: "map", width: 800, height: 800 });
    const small = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    let palette = null;
    let again = () => {};

    function paint(chance, side) {
      small.width = small.height = side;
      const dots = small.getContext("2d");
      const image = dots.createImageData(side, side);
      chance.forEach((p, k) => {
        const target = 4 * ((side - 1 - Math.floor(k / side)) * side + (k % side));
        const sure = 0.1 + 0.36 * Math.abs(2 * p - 1);
        const ink = palette.classes[p > 0.5 ? 1 : 0];
        for (let c = 0; c < 3; c++) image.data[target + c] = palette.paper[c] + sure * (ink[c] - palette.paper[c]);
        image.data[target + 3] = 255;
      });
      dots.putImageData(image, 0, 0);
      const board = canvas.getContext("2d");
      board.imageSmoothingQuality = "high";
      board.drawImage(small, 0, 0, canvas.width, canvas.height);
      return board;
    }

    // Where the chance crosses one half: in each square of four cells, the line between the crossings of its edges.
    function border(board, chance, side) {
      const size = canvas.width / side;
      const value = ([i, j]) => chance[i * side + j] - 0.5;
      const place = ([i, j]) => [(j + 0.5) * size, canvas.height - (i + 0.5) * size];
      board.beginPath();
      for (let k = 0; k < (side - 1) ** 2; k++) {
        const [i, j] = [Math.floor(k / (side - 1)), k % (side - 1)];
        const ring = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]];
        const ends = ring.flatMap((from, n) => {
          const to = ring[(n + 1) % 4];
          const [u, v, a, b] = [value(from), value(to), place(from), place(to)];
          return u > 0 === v > 0 ? [] : [a.map((start, c) => start + (u / (u - v)) * (b[c] - start))];
        });
        for (let n = 0; n + 1 < ends.length; n += 2) {
          board.moveTo(...ends[n]);
          board.lineTo(...ends[n + 1]);
        }
      }
      board.strokeStyle = css(palette.ink);
      board.lineWidth = 3;
      board.lineCap = "round";
      board.stroke();
    }

    function dotted(board, chance, { side, box: [left, right, bottom, top] }, { points, size }) {
      const cell = (value, low, high) => ((value - low) / (high - low)) * (side - 1);
      for (const [x, y, label] of points) {
        const [j, i] = [cell(x, left, right), cell(y, bottom, top)];
        const [u, v] = [((j + 0.5) / side) * canvas.width, canvas.height - ((i + 0.5) / side) * canvas.height];
        const right_side = chance[Math.round(i) * side + Math.round(j)] > 0.5 === (label === 1);
        board.beginPath();
        if (label === 0) board.arc(u, v, size, 0, 7);
        else board.rect(u - 0.88 * size, v - 0.88 * size, 1.76 * size, 1.76 * size);
        board.fillStyle = css(right_side ? palette.classes[label] : palette.paper);
        board.strokeStyle = css(right_side ? palette.paper : palette.classes[label]);
        board.lineWidth = right_side ? size / 4 : size / 2.4;
        board.fill();
        board.stroke();
      }
    }

    function draw(frame, groups, words) {
      again = () => draw(frame, groups, words);
      palette ??= colours();
      const chance = frame.cells.match(/../g).map((pair) => parseInt(pair, 16) / 255);
      const board = paint(chance, frame.side);
      border(board, chance, frame.side);
      groups.forEach((group) => dotted(board, chance, frame, group));
      canvas.setAttribute("aria-label", words);
    }

    const repaint = () => {
      palette = null;
      again();
    };
    document.addEventListener("lemmata:theme", repaint);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    return { canvas, draw };
  };
})(window.lemmataLab);
