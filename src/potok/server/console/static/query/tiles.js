// The row of key numbers.

import { el, setText } from "../dom.js";
import { batchTime, bytes, compact, count, percent, rate } from "../format.js";
import { Sparkline } from "./sparkline.js";

const TILES = [
  {
    curve: "rate_in", title: "Records in", tone: "source",
    value: (s) => [rate(s.rate_in), "/s"],
    below: (s) => `${compact(s.total_in)} in all`,
  },
  {
    curve: "rate_out", title: "Records out", tone: "sink",
    value: (s) => [rate(s.rate_out), "/s"],
    below: (s) => `${compact(s.total_out)} in all`,
  },
  {
    curve: "lag", title: "Lag", tone: "stateless",
    value: (s) => [count(s.lag), ""],
    below: (s) => (s.lag ? "records not yet read" : "read to the end"),
  },
  {
    curve: "batch_ms", title: "Batch time", tone: "stateless",
    value: (s) => batchTime(s.batch_ms),
    below: (s) => `batch ${count(s.batch)}`,
  },
  {
    curve: "dead_letters", title: "Dead letters", tone: "bad",
    value: (s) => [count(s.dead_letters), ""],
    below: (s) => `${percent(s.dead_letters, s.total_in)} of the records`,
  },
  {
    curve: "state_bytes", title: "State", tone: "stateful",
    value: (s) => bytes(s.state_bytes),
    below: (s) => `${count(s.state_keys)} rows`,
  },
];

export class Tiles {
  constructor(parent) {
    this.tiles = TILES.map((tile) => {
      const value = el("span", { class: "number", text: "–" });
      const unit = el("span", { class: "unit" });
      const below = el("p", { class: "below", text: "waiting for the first batch" });
      const spark = new Sparkline();
      parent.append(
        el("article", { class: `tile ${tile.tone}`, "data-tile": tile.curve },
          el("h2", { text: tile.title }), el("p", { class: "value" }, value, unit), below, spark.element),
      );
      return { ...tile, valueNode: value, unitNode: unit, belowNode: below, spark };
    });
  }

  update(snapshot, history) {
    for (const tile of this.tiles) {
      if (snapshot.batch !== undefined && snapshot.batch !== null) {
        const [value, unit] = tile.value(snapshot);
        setText(tile.valueNode, value);
        setText(tile.unitNode, unit);
        setText(tile.belowNode, tile.below(snapshot));
      }
      tile.spark.draw(history.map((point) => point[tile.curve]));
    }
  }
}
