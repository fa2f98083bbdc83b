// Small pictures of the labs: each is asked for until the library has drawn it.
"use strict";

for (const image of document.querySelectorAll("[data-thumbnail]")) {
  const address = image.dataset.thumbnail;
  let left = 40; // times to ask, in half a minute

  const ask = async () => {
    const { status } = await fetch(address);
    if (status === 200) image.src = address;
    else if (status === 202 && left--) setTimeout(ask, 700);
  };
  ask().catch(() => {}); // the page is being left
}
