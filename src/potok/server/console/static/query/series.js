// The totals of the latest windows as stacked bars that move to the left.

import { el, keyed, setText, svg } from "../dom.js";
import { clock, compact, money } from "../format.js";

const HEIGHT = 324;
const LEFT = 50;
const BOTTOM = 26;
const TOP = 10;
const INNER = HEIGHT - TOP - BOTTOM;

export class Series {
  constructor(panel, index) {
    this.panel = panel;
    this.picked = null;
    const id = `panel-${index}`;
    this.grid = svg("g", { class: "grid", "aria-hidden": "true" });
    this.bars = svg("g", { class: "windows" });
    this.times = svg("g", { class: "times", "aria-hidden": "true" });
    this.chart = svg("svg", { class: "chart", height: HEIGHT, role: "img", tabindex: 0, "aria-label": panel.title,
      pointermove: (event) => this.pickAt(event), pointerleave: () => this.pick(null), blur: () => this.pick(null),
      keydown: (event) => this.step(event) }, this.grid, this.bars, this.times);
    this.legend = el("ul", { class: "legend parts" });
    this.tip = el("div", { class: "tip", role: "status", hidden: true });
    this.aside = el("p", { class: "aside", text: panel.table });
    this.empty = el("p", { class: "empty", text: "Waiting for the first batch…" });
    this.element = el("section", { class: "card series-card", "aria-labelledby": id },
      el("div", { class: "card-head" }, el("h2", { id, text: panel.title }), this.aside),
      el("div", { class: "stack" }, this.chart, this.tip, this.empty), this.legend);
    new ResizeObserver(() => this.data && this.draw()).observe(this.chart);
  }

  update(data) {
    this.empty.hidden = Boolean(data?.windows?.length);
    if (!data?.windows?.length) return;
    this.data = data;
    this.draw();
    this.showTip();
  }

  draw() {
    const { windows, keys } = this.data;
    const last = windows.at(-1);
    const size = last.end - last.start;
    const width = this.chart.clientWidth || 600;
    this.slot = (width - LEFT) / this.panel.limit;
    this.top = niceTop(Math.max(...windows.map((w) => w.total)));
    this.x = (w) => LEFT + (this.panel.limit - 1 - (last.start - w.start) / size) * this.slot;
    this.drawGrid(width);
    const shown = windows.filter((w) => this.x(w) >= LEFT - 1);
    keyed(this.bars, shown, (w) => w.start, (w) => this.makeBar(w), (node, w) => this.drawBar(node, w, keys, w === last));
    const every = Math.max(1, Math.ceil(64 / this.slot)) * size;
    const stamped = shown.filter((w) => w.start % every === 0 && this.x(w) + this.slot / 2 + 30 < width);
    keyed(this.times, stamped, (w) => w.start, (w) => svg("text", { y: HEIGHT - 6, text: clock(w.start) }),
      (node, w) => (node.style.transform = `translateX(${this.x(w) + this.slot / 2}px)`));
    this.drawLegend(keys);
    const closed = windows.at(-2);
    if (closed) setText(this.aside, `${money(closed.total, this.panel.unit)} in the last full window`);
  }

  drawGrid(width) {
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => share * this.top);
    keyed(this.grid, ticks.map((value, index) => ({ value, index })), (tick) => tick.index,
      () => svg("g", {}, svg("line", { x1: LEFT }), svg("text", { x: LEFT - 8, dy: "0.32em", "text-anchor": "end" })),
      (node, { value }) => {
        node.setAttribute("transform", `translate(0 ${(TOP + INNER * (1 - value / this.top)).toFixed(1)})`);
        node.firstChild.setAttribute("x2", width);
        setText(node.lastChild, value ? this.panel.unit + compact(value) : "0");
      });
  }

  makeBar(w) {
    const bar = svg("g", { class: "window" });
    bar.style.transform = `translateX(${this.x(w)}px)`;
    return bar;
  }

  drawBar(node, w, keys, open) {
    node.style.transform = `translateX(${this.x(w)}px)`;
    node.classList.toggle("open", open);
    node.classList.toggle("picked", w.start === this.picked);
    let floor = 0;
    const parts = keys.filter((key) => w.parts[key] > 0).map((key) => {
      const part = { key, tone: keys.indexOf(key), from: floor };
      floor += w.parts[key];
      return { ...part, to: floor };
    });
    keyed(node, parts, (part) => part.key, () => svg("rect", { rx: 1.5 }), (rect, part) => {
      const y = TOP + INNER * (1 - part.to / this.top);
      rect.setAttribute("class", part.key === "others" ? "tone-others" : `tone-${part.tone}`);
      rect.setAttribute("x", (this.slot * 0.12).toFixed(2));
      rect.setAttribute("width", (this.slot * 0.76).toFixed(2));
      rect.style.y = `${y.toFixed(2)}px`;
      rect.style.height = `${Math.max(0.5, (INNER * (part.to - part.from)) / this.top - 1).toFixed(2)}px`;
    });
  }

  drawLegend(keys) {
    keyed(this.legend, keys, (key) => key, (key) => el("li", { text: key }),
      (node, key, index) => node.setAttribute("class", key === "others" ? "tone-others" : `tone-${index}`));
  }

  pickAt(event) {
    if (!this.data) return;
    const x = event.clientX - this.chart.getBoundingClientRect().left;
    const hit = this.data.windows.find((w) => x >= this.x(w) && x < this.x(w) + this.slot);
    this.pick(hit ? hit.start : null);
  }

  step(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, Escape: 0 };
    if (!this.data || !(event.key in moves)) return;
    event.preventDefault();
    const { windows } = this.data;
    const at = windows.findIndex((w) => w.start === this.picked);
    const next = at < 0 ? windows.length - 1 : Math.min(windows.length - 1, Math.max(0, at + moves[event.key]));
    this.pick(moves[event.key] ? windows[next].start : null);
  }

  pick(start) {
    if (start === this.picked) return;
    this.picked = start;
    if (this.data) this.draw();
    this.showTip();
  }

  showTip() {
    const w = this.data?.windows.find((each) => each.start === this.picked);
    this.tip.hidden = !w;
    if (!w) return;
    const rows = this.data.keys.filter((key) => w.parts[key] > 0).map((key, index) =>
      el("li", { class: key === "others" ? "tone-others" : `tone-${this.data.keys.indexOf(key)}` },
        el("span", { text: key }), el("b", { text: money(w.parts[key], this.panel.unit) })));
    this.tip.replaceChildren(el("strong", { text: `${clock(w.start)} – ${clock(w.end)}` }),
      el("b", { text: money(w.total, this.panel.unit) }), el("ul", {}, ...rows.reverse()));
    const x = this.x(w) + this.slot / 2;
    const leftSide = x > this.chart.clientWidth / 2;
    this.tip.style.transform = `translate(${x + (leftSide ? -12 : 12)}px, ${TOP}px) translateX(${leftSide ? "-100%" : "0"})`;
  }
}

// The least round number at or above the greatest bar, whose quarters are round as well.
function niceTop(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most)));
  return [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].map((n) => n * power).find((n) => n >= most) || power * 10;
}
