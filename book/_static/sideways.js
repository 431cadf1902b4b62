"use strict";
// What is wider than its place moves by keyboard too. The theme sees to some code alone, and late.
addEventListener("load", async () => {
  await window.MathJax?.startup.promise;
  const watch = new ResizeObserver((seen) => {
    for (const { target } of seen) target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1;
  });
  const wide = ".bd-content :is(mjx-container[display], .pst-scrollable-table-container, pre)";
  document.querySelectorAll(wide).forEach((one) => watch.observe(one));
});
