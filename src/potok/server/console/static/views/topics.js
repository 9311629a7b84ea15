// The topics of the log, and one of them.

import { get, path } from "../api.js";
import { el } from "../dom.js";
import { compact, count, duration, size } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure, loading } from "../states.js";

const REFRESH_MS = 5_000;

export async function open(root, given) {
  const [name] = given.parts;
  if (name) {
    const { openTopic } = await import("../topics/topic.js");
    return openTopic(root, name, given);
  }
  return openList(root, given);
}

async function openList(root, { params, signal }) {
  const find = el("input", { type: "search", class: "grow", placeholder: "Find a topic", "aria-label": "Find a topic", autocomplete: "off", spellcheck: "false", value: params.get("find") || "", input: () => filter() });
  const internal = el("input", { type: "checkbox", change: () => refresh() });
  const number = el("p", { class: "aside" });
  const body = el("div", {}, loading());
  const grid = new Grid({ label: "Topics", columns: COLUMNS, onOpen: (topic) => (location.hash = `#${path("topics", topic.topic)}`) });
  root.append(el("div", { class: "view-head" }, el("h1", { text: "Topics" })),
    el("div", { class: "toolbar" }, find, el("label", { class: "check" }, internal, "internal topics"), number),
    el("section", { class: "card flush" }, body));
  let topics = [];

  function filter() {
    const wanted = find.value.trim().toLowerCase();
    const shown = topics.filter((topic) => topic.topic.toLowerCase().includes(wanted));
    grid.show(shown);
    number.textContent = shown.length === topics.length ? `${count(topics.length)} topics` : `${count(shown.length)} of ${count(topics.length)} topics`;
    if (!topics.length) body.replaceChildren(empty("No topics yet", "CREATE STREAM makes one, and so does: potok topics create orders --partitions 4"));
    else if (!shown.length) body.replaceChildren(empty("No topic has this in its name"));
    else if (body.firstChild !== grid.element) body.replaceChildren(grid.element);
  }

  async function refresh() {
    try {
      topics = (await get("/topics", { signal, params: { sizes: true, internal: internal.checked || undefined } })).described;
      filter();
    } catch (error) {
      if (signal.aborted) return;
      body.replaceChildren(failure(error, refresh));
    }
  }

  await refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

const COLUMNS = [
  { title: "Topic", width: "minmax(150px, 2.4fr)", min: 150, sort: (topic) => topic.topic, cell: (topic) => topic.topic },
  { title: "Partitions", width: "80px", min: 80, number: true, wide: true, sort: (topic) => topic.partitions, cell: (topic) => count(topic.partitions) },
  { title: "Records", width: "96px", min: 96, number: true, sort: (topic) => topic.records, cell: (topic) => `${topic.exact ? "" : "≤ "}${compact(topic.records)}` },
  { title: "Size", width: "86px", min: 86, number: true, sort: (topic) => topic.bytes, cell: (topic) => size(topic.bytes) },
  { title: "Kept", width: "minmax(110px, 1fr)", min: 110, wide: true, cell: (topic) => kept(topic.retention) },
  { title: "Read by", width: "minmax(110px, 1.3fr)", min: 110, wide: true, cell: (topic) => [...topic.read_by, ...topic.groups].join(", ") },
  { title: "Written by", width: "minmax(110px, 1.3fr)", min: 110, wide: true, cell: (topic) => topic.written_by.join(", ") },
];

export function kept({ cleanup_policy: policy, retention_ms: ms, retention_bytes: bytes, archive }) {
  const limits = [ms === null ? null : duration(ms), bytes === null ? null : `${size(bytes)} per partition`].filter(Boolean);
  const parts = [policy.includes("compact") ? "last record of each key" : null, policy.includes("delete") && limits.length ? limits.join(", ") : null].filter(Boolean);
  return `${parts.join(", ") || "for ever"}${archive ? ", then archived" : ""}`;
}
