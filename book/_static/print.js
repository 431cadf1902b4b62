"use strict";
// On paper a page is light, and nothing on it is folded.
{
  let before = null;
  addEventListener("beforeprint", () => {
    if (before) return;
    before = { theme: document.documentElement.dataset.theme, folded: document.querySelectorAll("details:not([open])") };
    document.documentElement.dataset.theme = "light";
    before.folded.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    document.documentElement.dataset.theme = before.theme;
    before.folded.forEach((one) => { one.open = false; });
    before = null;
  });
}
