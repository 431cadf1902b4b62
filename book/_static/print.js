"use strict";
// On paper a page is light, and nothing on it is folded.
let before = null;
addEventListener("beforeprint", () => {
  const { theme } = document.documentElement.dataset;
  const folded = document.querySelectorAll("details:not([open])");
  before = { theme, folded };
  document.documentElement.dataset.theme = "light";
  folded.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = before.theme;
  before.folded.forEach((one) => { one.open = false; });
});
