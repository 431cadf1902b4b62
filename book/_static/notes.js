"use strict";
// A link to a term or a paper says what it means under the pointer and under the keyboard's focus (_ext/finish.py).
document.addEventListener("DOMContentLoaded", () => {
  const note = document.createElement("div");
  let link = null, leaving = null, held = null, tapped = false;
  Object.assign(note, { className: "term-note", id: "term-note", hidden: true });
  note.setAttribute("role", "tooltip");
  document.body.append(note);

  function show(target) {
    clearTimeout(leaving);
    hide();
    link = target;
    link.setAttribute("aria-describedby", "term-note");
    note.textContent = link.dataset.note;
    note.hidden = false;
    place();
  }
  function place() {
    const at = link.getBoundingClientRect();
    const left = Math.min(at.left, document.documentElement.clientWidth - note.offsetWidth - 8);
    const below = at.bottom + 4 + note.offsetHeight < innerHeight;
    note.style.left = `${Math.max(8, left)}px`;
    note.style.top = `${below ? at.bottom + 4 : at.top - note.offsetHeight - 4}px`;
  }
  function hide() {
    link?.removeAttribute("aria-describedby");
    note.hidden = true;
    held = null;
    tapped = false;
  }
  const leave = () => { // not at once, so that the pointer can reach the note; not where the keyboard holds it
    if (held !== link) leaving = setTimeout(hide, 200);
  };

  for (const target of document.querySelectorAll("a[data-note]")) {
    target.addEventListener("mouseenter", () => show(target));
    target.addEventListener("focus", () => { show(target); held = target; });
    target.addEventListener("mouseleave", leave);
    target.addEventListener("blur", hide);
    target.addEventListener("click", (event) => { // a finger's first tap shows the note, its second goes there
      if (event.pointerType === "touch" && !tapped) {
        event.preventDefault();
        show(target);
        tapped = true;
      }
    });
  }
  note.addEventListener("mouseenter", () => clearTimeout(leaving));
  note.addEventListener("mouseleave", leave);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("pointerdown", (event) => { if (![note, link].some((one) => one?.contains(event.target))) hide(); });
  addEventListener("scroll", () => { if (!note.hidden) place(); }, { passive: true });
});
