// The topology as a drawing: steps that count, edges that flow.

import { setText, svg } from "../dom.js";
import { compact, count, rate } from "../format.js";
import { layout } from "./layout.js";

const WIDTH = 196;
const HEIGHT = 78;
const MARGIN = 16;
const DASH = 16; // distance of the dots on an edge
const ICONS = {
  source: "M2 4h12M2 8h12M2 12h8M13 10.5v4M11 12.5h4",
  stateless: "M4 3l5 5-5 5M9 3l5 5-5 5",
  stateful: "M2 3h12v10H2zM2 7h12M7 3v10",
  sink: "M2 8h8M7 4.5 10.5 8 7 11.5M14 3v10",
};
const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Topology {
  constructor(parent, detail) {
    this.parent = parent;
    this.detail = detail;
    this.hint = detail.textContent;
    this.steps = {};
    this.chosen = null;
    new ResizeObserver(() => this.nodes && this.draw()).observe(parent);
  }

  show({ nodes }) {
    this.nodes = nodes;
    this.drawnGap = null;
    this.draw();
  }

  draw() {
    const layers = 1 + Math.max(...layerNumbers(this.nodes));
    const room = this.parent.clientWidth - 2 * MARGIN - layers * WIDTH;
    const gapX = Math.floor(Math.min(130, Math.max(44, room / Math.max(1, layers - 1))));
    if (gapX === this.drawnGap) return;
    this.drawnGap = gapX;
    const plan = layout(this.nodes, { width: WIDTH, height: HEIGHT, gapX, gapY: 24 });
    const [w, h] = [plan.width + 2 * MARGIN, plan.height + 2 * MARGIN];
    this.edges = plan.edges.map((edge) => this.edge(edge));
    this.parts = new Map(this.nodes.map((node) => [node.name, this.step(node, plan.places.get(node.name))]));
    const inner = svg("g", { transform: `translate(${MARGIN} ${MARGIN})` });
    inner.append(...this.edges.flatMap((edge) => [edge.base, edge.flow]));
    inner.append(...[...this.parts.values()].map((part) => part.group));
    const drawing = svg("svg", { width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "group", "aria-label": "Steps" }, inner);
    this.parent.replaceChildren(drawing);
    this.edges.forEach((edge) => edge.start());
    this.update(this.steps);
  }

  edge({ from, to, path }) {
    const family = this.nodes.find((node) => node.name === from).family;
    const base = svg("path", { class: "edge", d: path });
    const flow = svg("path", { class: `edge-flow ${family}`, d: path, "stroke-dasharray": `0.1 ${DASH}` });
    const edge = { from, to, base, flow, motion: null };
    edge.start = () => {
      if (still.matches) return;
      const frames = [{ strokeDashoffset: DASH * 10 }, { strokeDashoffset: 0 }];
      edge.motion = flow.animate(frames, { duration: 10_000, iterations: Infinity });
      edge.motion.playbackRate = 0;
    };
    return edge;
  }

  step(node, { x, y }) {
    const name = svg("text", { class: "label", x: 36, y: 25, text: fit(node.label, 600, WIDTH - 48) });
    const detail = svg("text", { class: "what", x: 14, y: 45, text: fit(node.detail || node.kind, 400, WIDTH - 28) });
    const total = svg("text", { class: "count", x: 14, y: 66, text: "–" });
    const speed = svg("text", { class: "speed", x: WIDTH - 14, y: 66, "text-anchor": "end" });
    const icon = svg("path", { class: "icon", d: ICONS[node.family], transform: "translate(14 12.5)" });
    const choose = () => this.choose(node.name);
    const group = svg(
      "g",
      { class: `step ${node.family}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "img", "data-step": node.name,
        focus: choose, pointerenter: choose, click: choose },
      svg("rect", { class: "box", width: WIDTH, height: HEIGHT, rx: 12 }),
      icon, name, node.mode ? badge(node.mode) : null, detail, total, speed,
    );
    return { node, group, total, speed };
  }

  choose(name) {
    this.chosen = name;
    for (const [other, part] of this.parts) part.group.classList.toggle("chosen", other === name);
    this.describe();
  }

  describe() {
    if (!this.chosen || !this.parts.has(this.chosen)) return;
    const { node } = this.parts.get(this.chosen);
    const step = this.steps[node.name];
    const facts = [node.name, node.kind.replaceAll("_", " ")];
    if (node.detail) facts.push(node.detail);
    if (step) facts.push(`${count(step.in)} in → ${count(step.out)} out`);
    if (node.mode) facts.push(node.why ? `${node.mode}: ${node.why}` : node.mode);
    if (node.at) facts.push(node.at);
    setText(this.detail, facts.join("  ·  "));
  }

  update(steps) {
    this.steps = steps || {};
    if (!this.parts) return;
    for (const { node, group, total, speed } of this.parts.values()) {
      const step = this.steps[node.name];
      if (!step) continue;
      setText(total, compact(step.out));
      setText(speed, step.rate === undefined ? "" : `${rate(step.rate)}/s`);
      group.setAttribute("aria-label", `${node.label}, ${node.kind.replaceAll("_", " ")}, ${count(step.out)} records`);
    }
    for (const edge of this.edges) this.pace(edge, this.steps[edge.from]?.rate || 0);
    this.describe();
  }

  // Dots go faster with the logarithm of the rate: ten a second can be seen to move, and a million does not blur.
  pace(edge, perSecond) {
    const speed = perSecond > 0 ? 0.8 + 1.5 * Math.log10(1 + perSecond) : 0;
    edge.flow.classList.toggle("idle", !speed);
    edge.flow.style.strokeWidth = `${(2.5 + Math.min(2.5, Math.log10(1 + perSecond) / 2)).toFixed(2)}px`;
    if (edge.motion) edge.motion.updatePlaybackRate(speed);
  }

  stop() {
    for (const edge of this.edges || []) this.pace(edge, 0);
  }
}

function layerNumbers(nodes) {
  const layers = new Map();
  for (const node of nodes) layers.set(node.name, 1 + Math.max(-1, ...node.upstreams.map((name) => layers.get(name))));
  return layers.values();
}

function badge(mode) {
  const [w, x] = [52, WIDTH - 64];
  return svg("g", { class: `badge ${mode}`, transform: `translate(${x} -9)` },
    svg("rect", { class: "under", width: w, height: 18, rx: 9 }),
    svg("rect", { width: w, height: 18, rx: 9 }),
    svg("text", { x: w / 2, y: 12.5, "text-anchor": "middle", text: mode }));
}

const pen = document.createElement("canvas").getContext("2d");

// SVG text has no ellipsis of its own.
function fit(text, weight, width) {
  const style = getComputedStyle(document.body);
  pen.font = `${weight} ${weight > 500 ? 14 : 12}px ${style.fontFamily}`;
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return `${text.slice(0, end)}…`;
}
