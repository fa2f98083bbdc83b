// The lab was opened: keep the token where only pages of this very port find it, and go on.
"use strict";

(() => {
  const token = document.querySelector("meta[name=lemmata-token]").content;
  try {
    if (token) localStorage.setItem("lemmata-token", token);
    location.replace("/");
  } catch {
    document.querySelector("p").prepend("This browser keeps nothing for this page, so that no button will work: allow it to keep data for 127.0.0.1. ");
  }
})();
