// The greatest rows of a table as bars that change places.

import { el, keyed, setText } from "../dom.js";
import { count, money } from "../format.js";

const ROW = 36;

export class Top {
  constructor(panel, index) {
    this.panel = panel;
    const id = `panel-${index}`;
    this.list = el("ol", { class: "bars" });
    this.list.style.height = `${panel.limit * ROW}px`;
    this.empty = el("p", { class: "empty", text: "Waiting for the first batch…" });
    this.element = el("section", { class: "card top-card", "aria-labelledby": id },
      el("div", { class: "card-head" }, el("h2", { id, text: panel.title }), el("p", { class: "aside", text: panel.table })),
      el("div", { class: "stack" }, this.list, this.empty));
  }

  update(data) {
    const rows = data?.rows || [];
    this.empty.hidden = rows.length > 0;
    const most = Math.max(1e-9, ...rows.map((row) => row.value));
    // The elements stay in the order they were made and are moved by transforms, so that a change of rank can be seen;
    // for a screen reader the rank is part of the text.
    const byKey = [...rows.keys()].sort((a, b) => (rows[a].key < rows[b].key ? -1 : 1));
    keyed(this.list, byKey, (rank) => rows[rank].key, () => this.row(), (node, rank) => this.fill(node, rows[rank], rank, most));
  }

  row() {
    return el("li", {}, el("span", { class: "rank" }), el("span", { class: "key" }),
      el("span", { class: "track" }, el("span", { class: "bar" })), el("span", { class: "amount" }), el("span", { class: "beside" }));
  }

  fill(node, row, rank, most) {
    const [place, key, track, amount, beside] = node.children;
    node.style.transform = `translateY(${rank * ROW}px)`;
    track.firstChild.style.transform = `scaleX(${(Math.max(0, row.value) / most).toFixed(4)})`;
    setText(place, String(rank + 1));
    setText(key, row.key);
    key.title = row.key;
    setText(amount, money(row.value, this.panel.unit));
    setText(beside, row.beside === null || row.beside === undefined ? "" : `${count(row.beside)} ${this.panel.beside}`);
  }
}
