// Brings the parts of the page together.

import { byId, setText } from "./dom.js";
import { count, compact, duration, rate } from "./format.js";
import { Letters } from "./letters.js";
import { listen } from "./live.js";
import { markOverflow } from "./overflow.js";
import { Series } from "./series.js";
import { Tables } from "./tables.js";
import { Tiles } from "./tiles.js";
import { Top } from "./top.js";
import { Topology } from "./topology.js";

const POINTS = 120;
const STATES = {
  starting: "Spark is starting…",
  running: "Running",
  stopped: "Stopped",
  failed: "Failed",
  unreadable: "Cannot read the query",
};
const ENDED = ["stopped", "failed"];
const KINDS = { top: Top, series: Series };

const tiles = new Tiles(byId("tiles"));
const topology = new Topology(byId("topology"), byId("detail"));
const letters = new Letters();
const tables = new Tables();
let panels = [];
let history = [];
let drawn = "";

async function loadTopology() {
  const answer = await fetch("/api/topology");
  if (!answer.ok) return;
  const shape = await answer.json();
  const text = JSON.stringify(shape);
  if (text === drawn) return;
  drawn = text;
  setText(byId("query"), shape.query);
  if (shape.nodes.length) topology.show(shape);
  tables.show(shape);
  panels = (shape.panels || []).map((panel, index) => new KINDS[panel.kind](panel, index));
  byId("panels").replaceChildren(...panels.map((panel) => panel.element));
}

function point({ rate_in, rate_out, lag, batch_ms, dead_letters, state_bytes }) {
  return { rate_in, rate_out, lag, batch_ms, dead_letters, state_bytes };
}

function show(snapshot) {
  history = (snapshot.history || [...history, point(snapshot)]).slice(-POINTS);
  const { state } = snapshot;
  document.body.dataset.state = state;
  setText(byId("state-text"), snapshot.idle ? "Running, idle" : STATES[state] || state);
  setText(byId("uptime"), duration(snapshot.uptime_ms));
  setText(byId("batch"), count(snapshot.batch));
  setText(byId("total"), compact(snapshot.total_in));
  const failed = byId("failed");
  failed.hidden = !snapshot.error;
  setText(failed, snapshot.error || "");
  tiles.update(snapshot, history);
  topology.update(snapshot.steps);
  if (state !== "running") topology.stop();
  panels.forEach((panel, index) => panel.update(snapshot.panels?.[index]));
  letters.update(snapshot);
  tables.update(snapshot.tables);
  document.title = state === "running" ? `${rate(snapshot.rate_in)}/s · ${snapshot.query}` : `${STATES[state] || state} · ${snapshot.query}`;
}

function lost(tries) {
  topology.stop();
  if (ENDED.includes(document.body.dataset.state)) return; // the server has ended with its query, and that was told
  document.body.dataset.connection = "lost";
  byId("lost").hidden = false;
  setText(byId("lost-detail"), tries > 1 ? `Reconnecting… (try ${tries})` : "Reconnecting…");
}

function back() {
  delete document.body.dataset.connection;
  byId("lost").hidden = true;
  loadTopology(); // the server may have come back with another query
}

markOverflow(document.querySelectorAll(".scroll, .flow"));
// Without the drawing the numbers would still be right, so a failure here must not keep them away.
loadTopology().catch(() => {}).finally(() => listen("/api/live", { onSnapshot: show, onLost: lost, onBack: back }));
