"use strict";
// What tests/browsing.py asks of a page, from within: `probe.NAME()` returns plain data.
const probe = (() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const seen = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  const words = (text) => text.replace(/\s+/g, " ").trim();

  // A short name of an element that a person finds again.
  function name(element) {
    const steps = [];
    for (let at = element; at && at !== document.body && steps.length < 4; at = at.parentElement) {
      if (at.id) { steps.unshift(`#${at.id}`); break; }
      steps.unshift(at.localName + [...at.classList].slice(0, 2).map((one) => `.${one}`).join(""));
    }
    return `${steps.join(" > ")} “${words(element.textContent).slice(0, 30)}”`;
  }

  // ---- colours: [red, green, blue, alpha], all from 0 to 1
  function colour(text) {
    const numbers = text.match(/[\d.]+(e-?\d+)?/g)?.map(Number) ?? [];
    if (text.startsWith("rgb")) return [...numbers.slice(0, 3).map((one) => one / 255), numbers[3] ?? 1];
    if (text.startsWith("color(srgb")) return [...numbers.slice(0, 3), numbers[3] ?? 1];
    throw new Error(`a colour of another kind: ${text}`);
  }
  const over = (ink, ground) => ground.map((below, i) => (i === 3 ? 1 : ink[3] * ink[i] + (1 - ink[3]) * below));
  const linear = (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  function contrast(one, other) {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  }
  const hex = (one) => `#${one.slice(0, 3).map((part) => Math.round(255 * part).toString(16).padStart(2, "0")).join("")}`;

  // What the page paints below an element: the backgrounds of all that it lies in.
  function ground(element) {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.filter !== "none") throw new Error(`a filter changes the colours of ${name(at)}`);
      layers.push(colour(style.backgroundColor));
    }
    return layers.reduceRight((below, layer) => over(layer, below), [1, 1, 1, 1]);
  }

  // ---- drawings
  const SHAPES = "path, rect, circle, ellipse, line, polyline, polygon, use, image";
  const undrawn = "defs, clipPath, marker, symbol, pattern, mask";

  // A shape as painted: its paints with every opacity, and questions about points of the screen.
  function painted(element, svg) {
    const style = getComputedStyle(element);
    let opacity = 1;
    for (let at = element; at !== svg.parentElement; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const paint = (kind) => {
      if (style[kind] === "none" || (kind === "stroke" && parseFloat(style.strokeWidth) === 0)) return null;
      const [r, g, b, a] = colour(style[kind]);
      return [r, g, b, a * opacity * Number(style[`${kind}Opacity`])];
    };
    return { element, box: element.getBoundingClientRect(), fill: paint("fill"), stroke: paint("stroke"), order: 0 };
  }
  const inBox = (box, [x, y]) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom;
  function cut(element, point) {
    for (let at = element; at instanceof SVGElement; at = at.parentElement) {
      const id = at.getAttribute("clip-path")?.match(/#([\w-]+)/)?.[1];
      const [hole] = id ? document.getElementById(id).children : [];
      if (hole && !hole.isPointInFill(new DOMPoint(...point).matrixTransform(at.getScreenCTM().inverse()))) return true;
    }
    return false;
  }
  // <use> has no outline of its own, and its x and y move that of another shape.
  function outlined(element) {
    if (element.localName !== "use") return [element, element.getScreenCTM()];
    const shape = document.getElementById(element.href.baseVal.slice(1));
    const moved = element.getScreenCTM().translate(element.x.baseVal.value, element.y.baseVal.value);
    const own = shape.transform.baseVal.consolidate();
    return [shape, own ? moved.multiply(own.matrix) : moved];
  }
  function covers(shape, point) {
    if (!shape.fill || !inBox(shape.box, point) || cut(shape.element, point)) return false;
    const [outline, to] = outlined(shape.element);
    return outline.isPointInFill?.(new DOMPoint(...point).matrixTransform(to.inverse())) ?? true;
  }
  function below(shape, shapes, point, page) {
    const under = shapes.slice(0, shape.order).filter((one) => covers(one, point));
    const image = under.find((one) => one.element.localName === "image");
    if (image) throw new Error(`${name(shape.element)} lies on an image, whose colours are not known`);
    return under.reduce((lower, one) => over(one.fill, lower), page);
  }
  const along = ({ left, right, top, bottom }) =>
    [0.1, 0.3, 0.5, 0.7, 0.9].map((part) => [left + part * (right - left), (top + bottom) / 2]);
  function worst(ink, shape, shapes, points, page) {
    const found = points.map((point) => below(shape, shapes, point, page)).map((one) => [contrast(over(ink, one), one), one]);
    return found.sort((a, b) => a[0] - b[0])[0];
  }
  const line = (shape, kind, [ratio, on], ink) =>
    ({ where: name(shape.element), in: words(shape.element.closest("svg").getAttribute("aria-label") ?? "").slice(0, 40),
       kind, ratio: Math.round(100 * ratio) / 100, ink: hex(over(ink, on)), ground: hex(on) });

  // Points of an outline, on the screen.
  function outline(shape) {
    const [outline, to] = outlined(shape.element);
    if (!outline.getTotalLength) return along(shape.box);
    const length = outline.getTotalLength();
    return [0.05, 0.25, 0.5, 0.75, 0.95].map((part) => outline.getPointAtLength(part * length).matrixTransform(to))
      .map(({ x, y }) => [x, y]).filter((point) => !cut(shape.element, point));
  }

  // A mark is seen if its outline or its inside stands out somewhere; a text must, everywhere.
  function inDrawing(svg) {
    const page = ground(svg.parentElement);
    const elements = all(`${SHAPES}, text`, svg).filter((one) => !one.closest(undrawn) && one.getClientRects().length);
    const painting = elements.map((one) => painted(one, svg));
    const shapes = painting.filter((one) => one.element.localName !== "text"); // what may lie under a mark or a text
    shapes.forEach((shape, order) => { shape.order = order; });
    const found = [];
    for (const shape of painting) {
      const { element, box, fill, stroke } = shape;
      if (element.localName === "text") {
        if (!fill || !words(element.textContent)) continue;
        const order = shapes.filter((one) => one.element.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING).length;
        const reading = worst(fill, { ...shape, order }, shapes, along(box), page);
        if (reading[0] < 4.5) found.push(line(shape, "text", reading, fill));
        continue;
      }
      if (element.localName === "image") continue;
      const readings = [];
      const points = outline(shape);
      if (stroke) readings.push(...points.map((point) => [worst(stroke, shape, shapes, [point], page), stroke]));
      if (fill) readings.push(...along(box).filter((point) => covers(shape, point)).map((point) => [worst(fill, shape, shapes, [point], page), fill]));
      readings.sort((a, b) => b[0][0] - a[0][0]);
      if (readings.length && readings[0][0][0] < 3) found.push(line(shape, "mark", ...readings[0]));
    }
    return found;
  }

  // Every drawing is looked at, also those that a slider hides.
  function faint() {
    return all("article svg").filter((svg) => svg.getAttribute("role") === "img").flatMap((svg) => {
      const holder = svg.closest("[hidden]");
      const closed = all("details:not([open])").filter((one) => one.contains(svg));
      closed.forEach((one) => { one.open = true; });
      holder?.removeAttribute("hidden");
      try { return inDrawing(svg); } finally {
        if (holder) holder.hidden = true;
        closed.forEach((one) => { one.open = false; });
      }
    });
  }

  // ---- the page
  const theme = (mode) => {
    if (!document.getElementById("at-once")) {
      const style = Object.assign(document.createElement("style"), { id: "at-once" });
      style.textContent = "*, ::before, ::after { transition: none !important; animation: none !important; }";
      document.head.append(style);
    }
    Object.assign(document.documentElement.dataset, { mode, theme: mode });
  };
  const formulas = () => {
    const math = all(".math").filter((one) => !one.parentElement.closest(".math"));
    const bare = math.filter((one) => !one.querySelector("mjx-container")).map(name);
    const wrong = all("mjx-merror, [data-mjx-error]").map((one) => `${name(one)}: ${one.dataset.mjxError ?? ""}`);
    const raw = document.createTreeWalker(document.querySelector("article") ?? document.body, NodeFilter.SHOW_TEXT);
    const left = [];
    while (raw.nextNode()) {
      const { parentElement: at, data } = raw.currentNode;
      if (/\\[([]|\\begin\{|\\frac|\$[^$]+\$/.test(data) && !at.closest("pre, code, script, style, .math")) left.push(name(at));
    }
    const fonts = [...document.fonts].filter((one) => /MJX/.test(one.family));
    return { count: math.length, bare, wrong, left, loaded: fonts.filter((one) => one.status === "loaded").length,
             failed: fonts.filter((one) => one.status === "error").map((one) => one.family) };
  };
  const wide = () => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width && document.body.scrollWidth <= width) return [];
    const scrolls = (one) => one && one !== document.body && (getComputedStyle(one).overflowX !== "visible" || scrolls(one.parentElement));
    const out = all("body *").filter((one) => seen(one) && one.getBoundingClientRect().right > width + 1 && !scrolls(one.parentElement));
    const inner = out.filter((one) => !out.some((other) => other !== one && one.contains(other)));
    return [`${document.documentElement.scrollWidth} px`, ...inner.slice(0, 5).map(name)];
  };
  const searches = () => {
    const controls = all("input[type=search], input[name=q], button[class*=search-button]").filter(seen);
    return controls.filter((one) => !controls.some((other) => other !== one && other.contains(one))).map(name);
  };
  // What lies over the text instead of in it.
  const floating = () => all("article *").filter((one) => getComputedStyle(one).position === "fixed").map(name);
  const FOLDS = ".dropdown, .toggle, .hint, .solution, details";
  // What promises to be folded and lies open: its own text, beyond its title, can be read.
  const unfolded = () => all(FOLDS, document.querySelector("article") ?? document).filter((one) => {
    if (one.matches(".dropdown-menu, .dropdown-download-buttons, .dropdown-launch-buttons, .dropdown-source-buttons")) return false;
    const title = one.querySelector("summary, .admonition-title")?.innerText ?? "";
    return seen(one) && words(one.innerText).length > words(title).length + 20;
  }).map(name);
  // Unfold everything, and leave drawings empty, which are one picture to whoever does not see them; `close` undoes both.
  const open = () => {
    all("article details:not([open])").forEach((one) => { one.open = true; one.dataset.opened = ""; });
    all("article .toggle-hidden > button.toggle-button").forEach((one) => { one.click(); one.dataset.opened = ""; });
    all("svg[role=img]").forEach((one) => { one.parts = [...one.childNodes]; one.replaceChildren(); });
    return new Promise((done) => requestAnimationFrame(() => setTimeout(done))); // once what watches sizes has seen it
  };
  const close = () => {
    all("article details[data-opened]").forEach((one) => { one.open = false; delete one.dataset.opened; });
    all("article button[data-opened]").forEach((one) => { one.click(); delete one.dataset.opened; });
    all("svg[role=img]").forEach((one) => one.replaceChildren(...one.parts));
  };

  // ---- sliders
  const shown = (frames) => all(".drawing", frames).flatMap((one, i) => (seen(one) ? [i] : []));
  const slider = (frames) => {
    const input = frames.querySelector("input[type=range]");
    return { shown: shown(frames), says: input.getAttribute("aria-valuetext"), reads: frames.querySelector("output")?.value,
             names: all(".drawing", frames).map((one) => one.dataset.name), start: Number(input.defaultValue) };
  };
  // From now on, every frame that is shown goes into `frames.log`.
  const watch = (frames) => {
    frames.log = [];
    const note = () => { const now = shown(frames).join("+"); if (now !== frames.log.at(-1)) frames.log.push(now); };
    new MutationObserver(note).observe(frames, { attributes: true, subtree: true, attributeFilter: ["hidden", "style", "class"] });
    note();
  };

  return { faint, theme, formulas, wide, searches, floating, unfolded, open, close, slider, watch, name };
})();
globalThis.probe = probe;
