// One query: its topology with rates, and what an operator asks of it.

import { follow, get, path } from "../api.js";
import { tabs } from "../clicks.js";
import { byId, el, setText } from "../dom.js";
import { compact, count, duration, rate } from "../format.js";
import { pill, setPill, stateText } from "../pills.js";
import { actions } from "../query/actions.js";
import { openFlow } from "../query/flow.js";
import { openState } from "../query/state.js";
import { openSteps } from "../query/steps.js";
import { openSettings } from "../query/settings.js";

const ENDED = ["stopped", "failed"];

export async function open(root, { parts, params, signal }) {
  const name = parts[0] || "";
  const shown = new Query(name, signal);
  root.append(shown.head, shown.failed);
  const all = [
    { name: "flow", title: "Topology", open: (panel, mine) => openFlow(panel, shown, mine) },
    { name: "steps", title: "Steps", open: (panel, mine) => openSteps(panel, shown, mine) },
    { name: "state", title: "State and offsets", open: (panel, mine) => openState(panel, shown, mine) },
    { name: "settings", title: "Settings", open: (panel, mine) => openSettings(panel, shown, mine) },
  ];
  await shown.load();
  const found = tabs("Parts of the query", all, params.get("tab"), (tab) => {
    const target = `#${path("queries", name)}${tab === "flow" ? "" : `?tab=${tab}`}`;
    if (location.hash !== target && !signal.aborted) history.replaceState(null, "", target);
  });
  root.append(found.element);
  signal.addEventListener("abort", found.close, { once: true });
  shown.listen();
}

class Query {
  constructor(name, signal) {
    this.name = name;
    this.signal = signal;
    this.listeners = new Set();
    this.latest = null;
    this.shape = null;
    this.pill = pill("starting");
    this.pill.id = "state";
    this.pill.lastChild.id = "state-text";
    this.pill.setAttribute("role", "status");
    setText(this.pill.lastChild, "Connecting");
    this.title = el("span", { id: "query", text: name });
    this.facts = { uptime: el("dd", { id: "uptime", text: "–" }), batch: el("dd", { id: "batch", text: "–" }), total: el("dd", { id: "total", text: "–" }) };
    this.actions = actions(this);
    this.failed = el("div", { class: "banner", id: "failed", role: "alert", hidden: true });
    this.head = el("div", { class: "view-head query-head" },
      el("div", { class: "names" }, el("a", { class: "crumb", href: "#/", text: "Overview" }), el("h1", {}, this.title)), this.pill,
      el("dl", { class: "facts" },
        el("div", {}, el("dt", { text: "Up" }), this.facts.uptime),
        el("div", {}, el("dt", { text: "Batch" }), this.facts.batch),
        el("div", {}, el("dt", { text: "Records" }), this.facts.total)),
      this.actions.element);
  }

  async load() {
    this.shape = await get(path("queries", this.name, "topology"), { signal: this.signal });
  }

  // Calls `listener(snapshot)` now and whenever there is a new one, until the signal.
  watch(listener, signal) {
    this.listeners.add(listener);
    signal.addEventListener("abort", () => this.listeners.delete(listener), { once: true });
    if (this.latest) listener({ ...this.latest, history: this.history });
  }

  listen() {
    follow(path("queries", this.name, "live"), {
      signal: this.signal,
      onData: (snapshot) => this.show(snapshot),
      onLost: (tries) => this.lost(tries),
      onBack: () => this.back(),
      onError: (error) => this.problem(error),
    });
  }

  show(snapshot) {
    this.history = (snapshot.history || [...(this.history || []), snapshot]).slice(-120);
    this.latest = snapshot;
    const { state } = snapshot;
    document.body.dataset.state = state;
    setPill(this.pill, state, snapshot.idle);
    if (state === "starting" && !snapshot.batch) setText(this.pill.lastChild, "Spark is starting…");
    setText(this.facts.uptime, duration(snapshot.uptime_ms));
    setText(this.facts.batch, count(snapshot.batch));
    setText(this.facts.total, compact(snapshot.total_in));
    this.failed.hidden = !snapshot.error;
    setText(this.failed, snapshot.error || "");
    this.actions.update(snapshot);
    for (const listener of this.listeners) listener(snapshot);
    document.title = state === "running" ? `${rate(snapshot.rate_in)}/s · ${this.name}` : `${stateText(state)} · ${this.name}`;
  }

  problem(error) {
    this.failed.hidden = false;
    setText(this.failed, error.message);
  }

  lost(tries) {
    for (const listener of this.listeners) listener(null);
    if (ENDED.includes(document.body.dataset.state)) return; // the server has ended with its query, and that was told
    document.body.dataset.connection = "lost";
    byId("lost").hidden = false;
    setText(byId("lost-detail"), tries > 1 ? `Reconnecting… (try ${tries})` : "Reconnecting…");
  }

  async back() {
    delete document.body.dataset.connection;
    byId("lost").hidden = true;
    await this.load().catch(() => {}); // the server may have come back with a changed program
    for (const listener of this.listeners) listener({ ...this.latest, history: this.history, reloaded: true });
  }
}
