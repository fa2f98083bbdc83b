// Small pictures of the labs: each is asked for until the library has drawn it, a few at a time.
"use strict";

(() => {
  const waiting = [...document.querySelectorAll("[data-thumbnail]")];
  const pause = () => new Promise((done) => setTimeout(done, 700));

  async function draw(image) {
    const address = image.dataset.thumbnail;
    for (let left = 40; left; left--) { // times to ask, in half a minute
      const { status } = await fetch(address);
      if (status === 200) image.src = address;
      if (status !== 202) return;
      await pause();
    }
  }

  // The server has room for a handful of jobs, and there may be more labs than that.
  async function lane() {
    while (waiting.length) await draw(waiting.shift());
  }
  for (let lanes = 3; lanes; lanes--) lane().catch(() => {}); // the page is being left
})();
