"use strict";
// Bring each slider of book/figures.py to life: one drawing shown at a time, by slider or by the play button.
function wake(frames) {
  const controls = frames.querySelector(".frames-controls");
  const [play, slider, readout] = ["button", "input", "output"].map((name) => controls.querySelector(name));
  const drawings = [...frames.querySelectorAll(".drawing")];
  let timer = null;

  function show() {
    drawings.forEach((drawing, i) => { drawing.hidden = i !== slider.valueAsNumber; });
    const name = drawings[slider.valueAsNumber].dataset.name;
    readout.value = name;
    slider.setAttribute("aria-valuetext", name); // else a screen reader says the frame's number
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  function step() {
    slider.valueAsNumber += 1; // a range input stays at its max
    show();
    if (slider.value === slider.max) stop();
  }
  function start() {
    if ([slider.max, slider.defaultValue].includes(slider.value)) slider.value = 0; // all of it, unless moved by hand
    show();
    timer = setInterval(step, 700);
    play.textContent = "Pause";
  }
  slider.addEventListener("input", () => { stop(); show(); });
  play.addEventListener("click", () => (timer ? stop() : start()));
  controls.hidden = false;
  show();
}
document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".frames").forEach(wake));
