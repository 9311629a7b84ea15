// The live topology of a query, its key numbers, panels, dead letters and tables.

import { el } from "../dom.js";
import { markOverflow } from "../overflow.js";
import { Letters } from "./letters.js";
import { Series } from "./series.js";
import { Tables } from "./tables.js";
import { Tiles } from "./tiles.js";
import { Top } from "./top.js";
import { Topology } from "./topology.js";

const KINDS = { top: Top, series: Series };

export function openFlow(root, query, signal) {
  const tileParts = el("section", { class: "tiles", id: "tiles", "aria-label": "Key numbers" });
  const drawing = el("div", { class: "flow", id: "topology", tabindex: 0, role: "region", "aria-label": "Drawing of the topology" });
  const detail = el("p", { class: "detail", id: "detail", text: "Point at a step, or tab to it, to see what it does." });
  const panelParts = el("div", { class: "panels", id: "panels" });
  const letters = new Letters(query.name);
  const tables = new Tables(query.name);
  root.append(tileParts,
    el("section", { class: "card flow-card", "aria-labelledby": "topology-title" },
      el("div", { class: "card-head" }, el("h2", { id: "topology-title", text: "Topology" }), legend()), drawing, detail),
    panelParts, el("div", { class: "bottom" }, letters.element, tables.element));
  const tiles = new Tiles(tileParts);
  const topology = new Topology(drawing, detail);
  let panels = [];
  let drawn = "";

  function showShape() {
    const text = JSON.stringify(query.shape);
    if (text === drawn) return;
    drawn = text;
    if (query.shape.nodes.length) topology.show(query.shape);
    tables.show(query.shape);
    panels = (query.shape.panels || []).map((panel, index) => new KINDS[panel.kind](panel, index));
    panelParts.replaceChildren(...panels.map((panel) => panel.element));
  }

  showShape();
  markOverflow([drawing, letters.region]);
  query.watch((snapshot) => {
    if (!snapshot) return topology.stop();
    if (snapshot.reloaded || (!query.shape.nodes.length && snapshot.batch)) query.load().then(showShape).catch(() => {});
    tiles.update(snapshot, query.history);
    topology.update(snapshot.steps);
    if (snapshot.state !== "running") topology.stop();
    panels.forEach((panel, index) => panel.update(snapshot.panels?.[index]));
    letters.update(snapshot);
    tables.update(snapshot.tables);
  }, signal);
}

function legend() {
  const names = { source: "source topic", stateless: "step", stateful: "table", sink: "sink" };
  return el("ul", { class: "legend", "aria-label": "Colours" },
    ...Object.entries(names).map(([kind, text]) => el("li", { class: kind, text })));
}
