// The last two minutes of one number as a line.

import { svg } from "../dom.js";

const WIDTH = 120;
const HEIGHT = 36;

export class Sparkline {
  constructor(points = WIDTH) {
    this.points = points;
    this.area = svg("path", { class: "area" });
    this.line = svg("path", { class: "line" });
    this.element = svg(
      "svg",
      { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
      this.area,
      this.line,
    );
  }

  // The newest value is at the right edge; a curve that has just started grows in from there.
  draw(values) {
    const shown = values.slice(-this.points);
    const top = Math.max(1e-9, ...shown.map((v) => v || 0)) * 1.12;
    const step = WIDTH / (this.points - 1);
    const x = (i) => (WIDTH - (shown.length - 1 - i) * step).toFixed(2);
    const y = (v) => (HEIGHT - 2 - ((v || 0) / top) * (HEIGHT - 4)).toFixed(2);
    const dots = shown.map((v, i) => (v === null || v === undefined ? null : `${x(i)} ${y(v)}`)).filter(Boolean);
    if (dots.length < 2) {
      this.line.setAttribute("d", "");
      this.area.setAttribute("d", "");
      return;
    }
    const line = `M${dots.join("L")}`;
    this.line.setAttribute("d", line);
    const [first, last] = [dots[0].split(" ")[0], dots.at(-1).split(" ")[0]];
    this.area.setAttribute("d", `${line}L${last} ${HEIGHT}L${first} ${HEIGHT}Z`);
  }
}
