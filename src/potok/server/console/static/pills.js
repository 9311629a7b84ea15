// The state of a query as a pill.

import { el, setText } from "./dom.js";

const STATES = {
  starting: "Starting",
  running: "Running",
  waiting: "Waiting",
  paused: "Paused",
  stopped: "Stopped",
  failed: "Failed",
  died: "Process died",
  unreadable: "Cannot be read",
};

export function pill(state, { idle = false, small = false } = {}) {
  const node = el("span", { class: small ? "pill small" : "pill" }, el("span", { class: "dot", "aria-hidden": "true" }), el("span"));
  setPill(node, state, idle);
  return node;
}

export function setPill(node, state, idle = false) {
  node.dataset.state = state;
  setText(node.lastChild, stateText(state, idle));
}

export function stateText(state, idle = false) {
  return idle && state === "running" ? "Running, idle" : STATES[state] || state;
}
