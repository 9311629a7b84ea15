// Where a query would resume: offsets, watermarks, shards.

import { get, path } from "../api.js";
import { el } from "../dom.js";
import { count, lagTime, size, when } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure, loading } from "../states.js";

const REFRESH_MS = 2_000;
const NEVER = -(2 ** 60);

export async function openState(root, query, signal) {
  const facts = el("dl", { class: "fact-list" });
  const shards = el("div", { class: "shards" });
  const offsets = new Grid({ label: "Offsets", columns: OFFSETS, height: "420px", tone: (row) => (row.lag > 10_000 ? "warn" : "") });
  const watermarks = new Grid({ label: "Watermarks", columns: WATERMARKS, height: "320px" });
  const watermarkCard = el("section", { class: "card flush" }, el("div", { class: "card-head" }, el("h2", { text: "Watermarks" })), watermarks.element);
  const body = el("div", {}, loading());
  root.append(body);

  async function refresh() {
    try {
      const found = await get(path("queries", query.name, "state"), { signal });
      if (body.firstChild?.className !== "columns") body.replaceChildren(
        el("div", { class: "columns" }, card("Ledger", facts), card("Shards", shards)),
        el("section", { class: "card flush" }, el("div", { class: "card-head" }, el("h2", { text: "Offsets" })), offsets.element),
        watermarkCard);
      fill(found);
    } catch (error) {
      if (signal.aborted) return;
      body.replaceChildren(error.status === 404 ? empty("Nothing is committed yet", "The first batch writes the ledger.") : failure(error));
    }
    if (!signal.aborted) setTimeout(() => !signal.aborted && refresh(), REFRESH_MS);
  }

  function fill(found) {
    const { pending, shards: sizes, tables } = found;
    const rows = {
      "Last committed batch": `${count(found.batch)}, ${when(found.committed_at_ms)}`,
      "Epoch": `${count(found.start)}: the query was started ${count(found.start)} ${found.start === 1 ? "time" : "times"}`,
      "Pending": pending ? `batch ${count(pending.batch)} with ${count(pending.records)} records: the next start runs it again` : "none",
      "State": found.state_in,
      "Tables": tables.map(({ table, keys }) => `${table}: ${count(keys)} keys`).join(", ") || "none",
      "Void": found.void.map(({ epoch, committed }) => `start ${epoch} died after batch ${committed}`).join("; "),
    };
    facts.replaceChildren(...Object.entries(rows).filter(([, text]) => text).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })]));
    const most = Math.max(1, ...sizes);
    shards.replaceChildren(...sizes.map((bytes, shard) => {
      const bar = el("span");
      bar.style.transform = `scaleX(${(bytes / most).toFixed(3)})`;
      return el("div", { class: "shard" }, el("span", { text: `Shard ${shard}` }), el("div", { class: "meter" }, bar), el("span", { class: "num", text: size(bytes) }));
    }));
    offsets.show(found.offsets);
    watermarks.show(found.watermarks);
    watermarkCard.hidden = !found.watermarks.length;
  }

  await refresh();
}

function card(title, ...content) {
  return el("section", { class: "card" }, el("div", { class: "card-head" }, el("h2", { text: title })), ...content);
}

const OFFSETS = [
  { title: "Topic", width: "minmax(130px, 2fr)", min: 130, sort: (row) => row.topic, cell: (row) => row.topic },
  { title: "Partition", width: "74px", min: 74, number: true, sort: (row) => row.partition, cell: (row) => count(row.partition) },
  { title: "Offset", width: "100px", min: 100, number: true, sort: (row) => row.offset, cell: (row) => count(row.offset) },
  { title: "End", width: "100px", min: 100, number: true, wide: true, cell: (row) => count(row.end_offset) },
  { title: "Lag", width: "90px", min: 90, number: true, sort: (row) => row.lag, cell: (row) => count(row.lag) },
  { title: "Stream time", width: "190px", min: 190, wide: true, cell: (row) => (row.stream_time_ms > NEVER && row.stream_time_ms !== null ? when(row.stream_time_ms) : "–") },
  { title: "Idle", width: "60px", min: 60, wide: true, cell: (row) => (row.idle ? "yes" : "") },
];

const WATERMARKS = [
  { title: "Step", width: "minmax(140px, 2fr)", min: 140, cell: (row) => row.step },
  { title: "Watermark", width: "190px", min: 190, cell: (row) => instant(row.watermark_ms) },
  { title: "Behind", width: "100px", min: 100, number: true, wide: true, cell: (row) => (row.watermark_ms > NEVER && row.watermark_ms !== null ? lagTime(Date.now() - row.watermark_ms) : "–") },
  { title: "Next window ends", width: "190px", min: 190, wide: true, cell: (row) => instant(row.next_end_ms) },
  { title: "Next timer", width: "190px", min: 190, wide: true, cell: (row) => instant(row.next_timer_ms) },
];

function instant(ms) {
  if (ms === null || ms === undefined) return "–";
  return ms > NEVER ? when(ms) : "not begun";
}
