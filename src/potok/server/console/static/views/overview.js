// All queries of the log, the worst first.

import { follow, path } from "../api.js";
import { server } from "../caller.js";
import { byId, el, setText, svg } from "../dom.js";
import { compact, count, lagTime, rate, size } from "../format.js";
import { Grid } from "../grid.js";
import { pill } from "../pills.js";
import { Sparkline } from "../query/sparkline.js";
import { empty, failure } from "../states.js";

const POINTS = 60;

const TILES = [
  { name: "queries", title: "Queries", tone: "source", value: (t) => [count(t.queries), ""], below: health },
  { name: "rate_in", title: "Records in", tone: "source", value: (t) => [rate(t.rate_in), "/s"], below: () => "all queries" },
  { name: "rate_out", title: "Records out", tone: "sink", value: (t) => [rate(t.rate_out), "/s"], below: () => "all queries" },
  { name: "lag", title: "Lag", tone: "stateless", value: (t) => [compact(t.lag), ""], below: (t) => (!t.lag ? "read to the end" : t.lag_ms ? `the oldest: ${lagTime(t.lag_ms)}` : "records not yet read") },
  { name: "dead_letters", title: "Dead letters", tone: "bad", value: (t) => [compact(t.dead_letters), ""], below: () => "since the queries were created" },
  { name: "state_bytes", title: "State", tone: "stateful", value: (t) => size(t.state_bytes).split(" "), below: (t) => `${count(t.restarts)} ${t.restarts === 1 ? "restart" : "restarts"}` },
];

export async function open(root, { signal }) {
  const about = el("small");
  const tiles = TILES.map(makeTile);
  const grid = new Grid({
    label: "Queries, the worst first",
    rowHeight: 54,
    columns: COLUMNS,
    tone: (row) => ({ failing: "bad", behind: "warn", off: "off" })[row.health],
    onOpen: (row) => (location.hash = `#${path("queries", row.query)}`),
  });
  const body = el("div", {}, el("p", { class: "empty", text: "Loading…" }));
  root.append(
    el("div", { class: "view-head" }, el("h1", {}, "Overview", about)),
    el("section", { class: "tiles", "aria-label": "Totals" }, ...tiles.map((tile) => tile.element)),
    el("section", { class: "card flush", "aria-label": "Queries" }, body));
  let history = [];

  server().then(({ log, version }) => setText(about, `${log} · Potok ${version}`)).catch(() => {});
  follow("/overview/live", {
    signal,
    onData({ totals, queries, history: known }) {
      history = [...(known || history), totals].slice(-POINTS);
      for (const tile of tiles) tile.update(totals, history);
      if (queries.length && body.firstChild !== grid.element) body.replaceChildren(grid.element);
      if (!queries.length) body.replaceChildren(noQueries());
      grid.show(queries);
      document.title = totals.failing ? `${totals.failing} failing · Potok` : `${rate(totals.rate_in)}/s · Potok`;
    },
    onLost(tries) {
      document.body.dataset.connection = "lost";
      byId("lost").hidden = false;
      setText(byId("lost-detail"), tries > 1 ? `Reconnecting… (try ${tries})` : "Reconnecting…");
    },
    onBack() {
      delete document.body.dataset.connection;
      byId("lost").hidden = true;
    },
    onError: (error) => body.replaceChildren(failure(error, () => location.reload())),
  });
}

const COLUMNS = [
  { title: "Query", width: "minmax(112px, 2.2fr)", min: 112, sort: (row) => row.query, cell: nameOf },
  { title: "State", width: "minmax(112px, 136px)", min: 112, sort: (row) => row.health, cell: (row) => pill(row.state, { idle: row.idle, small: true }) },
  { title: "Records/s", width: "72px", min: 72, number: true, sort: (row) => row.rate_in, cell: (row) => rate(row.rate_in) },
  { title: "", width: "92px", min: 92, wide: true, cell: (row) => mini(row.history.map(([value]) => value)) },
  { title: "Lag", width: "86px", min: 86, number: true, wide: true, sort: (row) => row.lag, cell: (row) => compact(row.lag) },
  { title: "Oldest", width: "84px", min: 84, number: true, wide: true, sort: (row) => row.lag_ms, cell: (row) => (row.lag ? lagTime(row.lag_ms) : "–") },
  { title: "Watermark lag", width: "110px", min: 110, number: true, wide: true, sort: (row) => row.watermark_lag_ms, cell: (row) => lagTime(row.watermark_lag_ms) },
  { title: "Dead letters", width: "98px", min: 98, number: true, wide: true, sort: (row) => row.dead_letters, cell: (row) => count(row.dead_letters) },
  { title: "Restarts", width: "78px", min: 78, number: true, wide: true, sort: (row) => row.restarts, cell: (row) => count(row.restarts) },
  { title: "Batch", width: "84px", min: 84, number: true, wide: true, sort: (row) => row.batch_ms, cell: (row) => lagTime(row.batch_ms) },
];

function nameOf(row) {
  const about = row.error ? row.error.split("\n")[0] : row.shadow_of ? `shadow of ${row.shadow_of}` : row.statement ? row.statement.replace(/\s+/g, " ") : "program";
  return el("div", { class: "two", title: row.error || row.statement || row.query },
    el("b", { text: row.query }), el("small", { class: row.error ? "wrong" : "", text: about }));
}

function mini(values) {
  const most = Math.max(1e-9, ...values.map((value) => value || 0)) * 1.1;
  const dots = values.map((value, at) => `${(84 - (values.length - 1 - at) * (84 / (POINTS - 1))).toFixed(1)} ${(22 - ((value || 0) / most) * 20).toFixed(1)}`);
  const line = dots.length > 1 ? `M${dots.join("L")}` : "";
  const last = dots.at(-1)?.split(" ")[0];
  return svg("svg", { class: "mini", viewBox: "0 0 84 24", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("path", { class: "area", d: line && `${line}L${last} 24L${dots[0].split(" ")[0]} 24Z` }), svg("path", { class: "line", d: line }));
}

function makeTile({ name, title, tone, value, below }) {
  const [number, unit, text] = [el("span", { class: "number", text: "–" }), el("span", { class: "unit" }), el("p", { class: "below", text: "…" })];
  const spark = new Sparkline(POINTS);
  const element = el("article", { class: `tile ${tone}`, "data-tile": name },
    el("h2", { text: title }), el("p", { class: "value" }, number, unit), text, spark.element);
  return {
    element,
    update(totals, history) {
      const [shown, of] = value(totals);
      setText(number, shown);
      setText(unit, of || "");
      setText(text, below(totals));
      spark.draw(history.map((each) => each[name]));
    },
  };
}

function health(totals) {
  const parts = ["failing", "behind"].filter((name) => totals[name]).map((name) => `${totals[name]} ${name}`);
  if (totals.off) parts.push(`${totals.off} stopped`);
  return parts.join(", ") || (totals.queries ? "all are healthy" : "none yet");
}

function noQueries() {
  return empty("No query has run here yet", "Write CREATE STREAM and CREATE TABLE … AS SELECT, or run a program: potok run orders.py",
    el("a", { class: "button primary", href: "#/sql", text: "Open the SQL editor" }));
}

