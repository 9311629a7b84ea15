// One topic: partitions, who reads it, its records, and a form to produce one.

import { get, path } from "../api.js";
import { needs } from "../caller.js";
import { tabs } from "../clicks.js";
import { el, setText } from "../dom.js";
import { count, size } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure } from "../states.js";
import { kept } from "../views/topics.js";
import { openRecords } from "./records.js";
import { produce } from "./produce.js";

const REFRESH_MS = 3_000;

export async function openTopic(root, name, { params, signal }) {
  const about = el("small");
  const write = el("button", { type: "button", class: "button", text: "Produce a record", click: () => produce(name, topic) });
  root.append(el("div", { class: "view-head" },
    el("h1", {}, el("a", { class: "crumb", href: "#/topics", text: "Topics" }), " / ", name, about), write));
  needs("write", write).catch(() => {});
  const partitions = new Grid({ label: "Partitions", columns: PARTITIONS, height: "420px" });
  const readers = new Grid({ label: "Readers", columns: READERS, height: "320px", onOpen: (row) => row.kind === "query" && (location.hash = `#${path("queries", row.name)}`) });
  let topic = null;

  async function load() {
    topic = await get(path("topics", name), { signal });
    const over = topic.sources.map((source) => `${source.kind} ${source.name}`).join(", ");
    setText(about, [`${topic.exact ? "" : "at most "}${count(topic.records)} records`, size(topic.bytes), `kept ${kept(topic.config)}`, over].filter(Boolean).join(" · "));
    partitions.show(topic.partition_offsets);
    readers.show(topic.readers);
  }

  try {
    await load();
  } catch (error) {
    root.append(failure(error));
    return;
  }
  const all = [
    { name: "records", title: "Records", open: (panel, mine) => openRecords(panel, name, topic, params, mine) },
    { name: "readers", title: "Readers", open: (panel) => panel.append(topic.readers.length ? flush("Readers and their lag", readers.element) : empty("Nothing reads this topic", "Queries, consumer groups and queues that read it are listed here, with their lag.")) },
    { name: "partitions", title: "Partitions", open: (panel) => panel.append(flush("Partitions", partitions.element)) },
  ];
  const found = tabs("Parts of the topic", all, params.get("tab"));
  root.append(found.element);
  const timer = setInterval(() => load().catch(() => {}), REFRESH_MS);
  signal.addEventListener("abort", () => {
    clearInterval(timer);
    found.close();
  }, { once: true });
}

function flush(title, element) {
  return el("section", { class: "card flush" }, el("div", { class: "card-head" }, el("h2", { text: title })), element);
}

const PARTITIONS = [
  { title: "Partition", width: "minmax(80px, 1fr)", min: 80, cell: (part) => count(part.partition) },
  { title: "First offset", min: 100, number: true, wide: true, cell: (part) => count(part.start_offset) },
  { title: "Next offset", min: 100, number: true, cell: (part) => count(part.end_offset) },
  { title: "Records", min: 90, number: true, sort: (part) => part.records, cell: (part) => count(part.records) },
  { title: "Size", min: 80, number: true, sort: (part) => part.bytes, cell: (part) => size(part.bytes) },
  { title: "Archived from", min: 100, number: true, wide: true, cell: (part) => (part.archived_from === null ? "–" : count(part.archived_from)) },
];

const READERS = [
  { title: "Reader", width: "minmax(140px, 2fr)", min: 140, sort: (row) => row.name, cell: (row) => row.name },
  { title: "Kind", width: "110px", min: 100, cell: (row) => row.kind },
  { title: "Members", width: "90px", min: 90, number: true, wide: true, cell: (row) => (row.members === null ? "–" : count(row.members)) },
  { title: "Lag", width: "100px", min: 90, number: true, sort: (row) => row.lag, cell: (row) => count(row.lag) },
];
