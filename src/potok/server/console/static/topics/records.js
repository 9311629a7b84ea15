// Browse the records of a topic by position, time or key.

import { get, path } from "../api.js";
import { el, setText } from "../dom.js";
import { count, plain, when } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure, loading } from "../states.js";
import { showRecord } from "./record.js";

const LIMIT = 200;

export function openRecords(root, name, topic, params, signal) {
  const by = el("select", { "aria-label": "Show", change: () => shape() },
    ...[["latest", "The latest"], ["offset", "From an offset"], ["time", "From a time"], ["key", "Of a key"]].map(([value, text]) => el("option", { value, text })));
  const what = el("input", { type: "text", autocomplete: "off", spellcheck: "false" });
  const at = el("input", { type: "datetime-local", step: "0.001", "aria-label": "Time" });
  const partition = el("select", { "aria-label": "Partition", change: () => search() }, el("option", { value: "", text: "all" }),
    ...topic.partition_offsets.map((part) => el("option", { value: part.partition, text: String(part.partition) })));
  const go = el("button", { class: "button primary", text: "Show" });
  const live = el("input", { type: "checkbox" });
  const foot = el("p", { class: "foot soft" });
  const body = el("div", {}, loading());
  const older = el("button", { type: "button", class: "button small", text: "Older", click: () => search({ before: page.previous }) });
  const newer = el("button", { type: "button", class: "button small", text: "Newer", click: () => search({ after: page.next }) });
  const field = el("label", { class: "field grow" }, "Offset", what);
  const timeField = el("label", { class: "field grow" }, "Time, in your zone", at);
  const form = el("form", { class: "toolbar", submit: (event) => { event.preventDefault(); search(); } },
    el("label", { class: "field" }, "Records", by), field, timeField, el("label", { class: "field" }, "Partition", partition), go,
    el("label", { class: "check" }, live, "follow"));
  const grid = new Grid({ label: `Records of ${name}`, columns: COLUMNS, onOpen: (record) => showRecord(name, record), keyOf: (record) => `${record.partition}:${record.offset}` });
  root.append(form, el("section", { class: "card flush" }, body), el("div", { class: "toolbar foot-bar" }, foot, older, newer));
  let page = {};
  let asked = 0;

  function shape() {
    const kind = by.value;
    field.hidden = !["offset", "key"].includes(kind);
    timeField.hidden = kind !== "time";
    field.firstChild.textContent = kind === "key" ? "Key" : "Offset, or partition:offset";
    what.setAttribute("aria-label", kind === "key" ? "Key" : "Offset");
    if (kind === "latest") search();
    else (kind === "time" ? at : what).focus();
  }

  function wanted() {
    const given = { limit: LIMIT, partition: partition.value };
    if (by.value === "key" && what.value) return { ...given, key: what.value };
    if (by.value === "time" && at.value) return { ...given, at: new Date(at.value).getTime() };
    if (by.value === "offset" && what.value) return { ...given, after: positions(what.value.trim()) };
    return given;
  }

  // A plain offset is meant in every partition, as far as it has that many records.
  function positions(text) {
    if (text.includes(":")) return text;
    return topic.partition_offsets.map((part) => `${part.partition}:${Math.min(Number(text) || 0, part.end_offset)}`).join(",");
  }

  async function search(move = null) {
    const number = (asked += 1);
    try {
      const found = await get(path("topics", name, "records"), { signal, params: move ? { limit: LIMIT, partition: partition.value, key: by.value === "key" ? what.value : "", ...move } : wanted() });
      if (number !== asked) return;
      page = found;
      fill();
    } catch (error) {
      if (!signal.aborted && number === asked) body.replaceChildren(failure(error));
    }
  }

  function fill() {
    const newestFirst = by.value === "latest" || by.value === "key";
    const rows = newestFirst ? [...page.records].reverse() : page.records;
    if (rows.length) {
      if (body.firstChild !== grid.element) body.replaceChildren(grid.element);
      grid.show(rows);
    } else if (by.value === "key" && !page.at_end) body.replaceChildren(empty("Not found yet", `${count(page.searched)} records were searched; “Older” continues.`));
    else body.replaceChildren(empty(topic.records ? "No records here" : "This topic is empty", by.value === "key" ? "No record has this key." : ""));
    const order = newestFirst ? "the newest first" : "the oldest first";
    setText(foot, rows.length ? `${count(rows.length)} records, ${order}${page.searched ? `; ${count(page.searched)} searched` : ""}` : "");
    newer.hidden = by.value === "key";
    older.disabled = by.value !== "latest" && by.value !== "key" ? false : page.at_end;
  }

  const timer = setInterval(() => {
    if (live.checked && by.value === "latest") search();
  }, 1_000);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  if (params.get("key")) {
    by.value = "key";
    what.value = params.get("key");
  }
  if (params.get("at")) {
    by.value = "offset";
    what.value = params.get("at");
  }
  const kind = by.value;
  field.hidden = !["offset", "key"].includes(kind);
  timeField.hidden = kind !== "time";
  search();
}

const COLUMNS = [
  { title: "Position", width: "minmax(84px, 110px)", min: 84, mono: true, cell: (record) => `${record.partition}:${record.offset}` },
  { title: "Time", width: "minmax(80px, 180px)", min: 80, wide: true, cell: (record) => el("span", { title: when(record.timestamp), text: when(record.timestamp) }) },
  { title: "Key", width: "minmax(80px, 1fr)", min: 80, mono: true, cell: (record) => plain(record.key) },
  { title: "Value", width: "minmax(140px, 4fr)", min: 140, mono: true, cell: (record) => plain(record.value) },
  { title: "Bytes", width: "70px", min: 70, number: true, wide: true, cell: (record) => count(record.key_bytes + record.value_bytes) },
];

