// Listeners of gateways, captures of databases, connectors, and destinations outside the log.

import { get, path } from "../api.js";
import { el } from "../dom.js";
import { count, plain, pretty, size, when } from "../format.js";
import { Grid } from "../grid.js";
import { sheet } from "../dialogs.js";
import { pill } from "../pills.js";
import { empty, failure, loading } from "../states.js";

const REFRESH_MS = 2_000;

export async function open(root, { signal }) {
  const make = (label, columns, tone) => new Grid({ label, columns, rowHeight: 50, height: "420px", tone, onOpen: show });
  const grids = {
    listeners: make("Listeners", LISTENERS, (row) => (row.process_state === "died" || row.problem ? "bad" : lost(row.counts) ? "warn" : "")),
    connectors: make("Connectors", CONNECTORS, (row) => (row.error ? "bad" : "")),
    captures: make("Captures", CAPTURES, (row) => (row.process_state === "died" || row.problem ? "bad" : "")),
    sinks: make("Sinks", SINKS, (row) => (row.error ? "bad" : "")),
    webhooks: make("Endpoints of webhooks", WEBHOOKS, (row) => (row.disabled ? "bad" : row.waiting ? "warn" : "")),
  };
  const titles = { listeners: "Gateway listeners", connectors: "Connectors", captures: "Captures of databases", sinks: "Sinks", webhooks: "Webhook endpoints" };
  const body = el("div", {}, loading());
  root.append(el("div", { class: "view-head" }, el("h1", { text: "Sources and sinks" })), body);
  const cards = Object.fromEntries(Object.entries(grids).map(([name, grid]) => [name, el("section", { class: "card flush", hidden: true }, el("div", { class: "card-head" }, el("h2", { text: titles[name] })), grid.element)]));
  const nothing = empty("Nothing outside the log yet", "potok gateway receives webhooks, datagrams and files; potok cdc captures tables; .to_postgres(…), .to_webhook(…) and others deliver.");

  async function refresh() {
    try {
      const found = Object.assign({}, ...(await Promise.all(["/gateway", "/captures", "/sinks"].map((target) => get(target, { signal })))));
      for (const [name, grid] of Object.entries(grids)) {
        cards[name].hidden = !found[name].length;
        grid.show(found[name]);
      }
      nothing.hidden = Object.keys(grids).some((name) => found[name].length);
      if (body.firstChild !== nothing) body.replaceChildren(nothing, ...Object.values(cards));
    } catch (error) {
      if (!signal.aborted) body.replaceChildren(failure(error, refresh));
    }
  }

  await refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

function show(row) {
  sheet(row.name || row.step, el("pre", { tabindex: 0, text: pretty(row) }));
}

const lost = (counts) => Object.values(counts?.lost || {}).reduce((sum, n) => sum + n, 0) + (counts?.kernel_dropped || 0) + (counts?.missing || 0);
const reasons = (some) => Object.entries(some || {}).map(([reason, n]) => `${reason.replaceAll("_", " ")} ${count(n)}`).join(", ");
const named = (title, small) => (row) => el("div", { class: "two" }, el("b", { text: plain(row[title]) }), el("small", { class: row.problem || row.error ? "wrong" : "", text: row.problem || row.error || small(row) }));
const state = (row) => pill(row.process_state, { small: true });
const number = (title, value, wide = false) => ({ title, width: "90px", min: 76, number: true, wide, sort: value, cell: (row) => count(value(row)) });

const LISTENERS = [
  { title: "Listener", width: "minmax(130px, 2fr)", min: 130, cell: named("name", (row) => [row.kind, row.address, `into ${row.topic}`].filter(Boolean).join(" · ")) },
  { title: "Process", width: "120px", min: 110, cell: state },
  number("Received", (row) => row.counts?.received),
  number("Landed", (row) => row.counts?.landed, true),
  number("Buffered", (row) => row.counts?.buffered, true),
  { ...number("Lost", (row) => lost(row.counts)), cell: (row) => el("span", { title: reasons(row.counts?.lost), text: count(lost(row.counts)) }) },
  { title: "Lost and refused, by reason", width: "minmax(120px, 1.5fr)", min: 120, wide: true, cell: (row) => [reasons(row.counts?.lost), reasons(row.counts?.refused)].filter(Boolean).join("; refused: ") },
];

const CONNECTORS = [
  { title: "Connector", width: "minmax(130px, 2fr)", min: 130, cell: named("name", (row) => row.class_name) },
  { title: "State", width: "120px", min: 100, cell: (row) => row.state },
  { title: "Topics", min: 110, wide: true, cell: (row) => row.topics.join(", ") },
  { title: "Counts", width: "minmax(120px, 2fr)", min: 120, wide: true, cell: (row) => Object.entries(row.counts || {}).map(([name, value]) => `${name} ${plain(value)}`).join(", ") },
];

const CAPTURES = [
  { title: "Capture", width: "minmax(130px, 2fr)", min: 130, cell: named("name", (row) => Object.keys(row.snapshots || {}).join(", ")) },
  { title: "Process", width: "120px", min: 110, cell: state },
  { title: "State", width: "100px", min: 90, cell: (row) => row.state },
  number("Changes", (row) => row.changes),
  { title: "Behind", width: "100px", min: 90, number: true, wide: true, cell: (row) => (row.lag_bytes === null ? "–" : size(row.lag_bytes)) },
  { title: "Snapshots", width: "minmax(120px, 1.6fr)", min: 120, wide: true, cell: (row) => Object.entries(row.snapshots || {}).map(([table, one]) => `${table} ${one.done ? "done" : `${count(one.rows)} of ${count(one.total)}`}`).join(", ") },
  { title: "Reported", width: "180px", min: 180, wide: true, cell: (row) => when(row.reported_at_ms) },
];

const SINKS = [
  { title: "Sink", width: "minmax(130px, 2fr)", min: 130, cell: (row) => el("div", { class: "two" }, el("b", { text: row.step }), el("small", {}, el("a", { href: `#${path("queries", row.query)}`, text: row.query }), row.error ? `: ${row.error}` : "")) },
  { title: "Into", width: "minmax(120px, 2fr)", min: 120, cell: (row) => row.detail },
  { title: "Guarantee", width: "130px", min: 110, wide: true, cell: (row) => (row.guarantee || "").replaceAll("_", " ") },
  number("Records", (row) => row.records),
  { title: "Query", width: "110px", min: 100, wide: true, cell: (row) => (row.query_state ? pill(row.query_state, { small: true }) : "–") },
];

const WEBHOOKS = [
  { title: "Endpoint", width: "minmax(130px, 2fr)", min: 130, cell: (row) => el("div", { class: "two" }, el("b", { text: row.endpoint }), el("small", { text: `${row.step} of ${row.query}` })) },
  { title: "State", width: "110px", min: 90, cell: (row) => (row.disabled ? "disabled" : "enabled") },
  number("Waiting for a retry", (row) => row.waiting),
  number("Not read yet", (row) => row.unread, true),
];
