// The tables of the query: a list, and a look into one of them.

import { byId, el, setText } from "./dom.js";
import { clock, count } from "./format.js";

const REFRESH_MS = 2_000;

export class Tables {
  constructor() {
    this.dialog = byId("browse");
    this.find = byId("browse-find");
    this.timer = 0;
    this.asked = 0;
    this.find.addEventListener("input", () => this.refresh());
    this.find.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    this.dialog.addEventListener("close", () => clearTimeout(this.timer));
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
  }

  show({ tables }) {
    byId("tables-empty").hidden = tables.length > 0;
    byId("tables").replaceChildren(...tables.map((table) =>
      el("li", {}, el("button", { type: "button", "data-table": table.name, click: () => this.open(table) },
        el("span", { class: "table-name", text: table.name }), el("span", { class: "table-rows" }),
        el("span", { class: "table-kind", text: table.kind })))));
  }

  update(sizes) {
    for (const button of byId("tables").querySelectorAll("button")) {
      const rows = sizes?.[button.dataset.table];
      setText(button.children[1], rows === undefined ? "" : `${count(rows)} rows`);
    }
  }

  open(table) {
    this.table = table;
    setText(byId("browse-title"), table.name);
    this.find.value = "";
    const columns = table.windowed ? ["Window", "Key", "Value"] : ["Key", "Value"];
    byId("browse-head").replaceChildren(el("tr", {}, ...columns.map((text) => el("th", { scope: "col", text }))));
    byId("browse-rows").replaceChildren();
    setText(byId("browse-foot"), "");
    this.dialog.showModal();
    this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    const number = (this.asked += 1);
    const path = `/api/tables/${encodeURIComponent(this.table.name)}?limit=100&find=${encodeURIComponent(this.find.value)}`;
    try {
      const answer = await fetch(path);
      const data = await answer.json();
      if (number !== this.asked) return; // a later key stroke asked again
      if (answer.ok) this.fill(data);
      else setText(byId("browse-foot"), data.error || "This table cannot be read.");
    } catch {
      setText(byId("browse-foot"), "The server does not answer; trying again.");
    }
    if (this.dialog.open) this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  fill({ rows, more }) {
    byId("browse-empty").hidden = rows.length > 0;
    byId("browse-rows").replaceChildren(...rows.map((row) => this.row(row)));
    setText(byId("browse-foot"), more ? `The first ${count(rows.length)} rows; type a part of a key to find others.` : `${count(rows.length)} rows`);
  }

  row({ key, value, start, end }) {
    const cells = [el("td", { class: "key", text: text(key) }), el("td", { class: "number-cell", text: text(value) })];
    if (this.table.windowed) cells.unshift(el("td", { class: "when", text: `${clock(start)} – ${clock(end)}` }));
    return el("tr", {}, ...cells);
  }
}

function text(value) {
  if (typeof value === "string") return value;
  if (typeof value === "number") return value.toLocaleString("en", { maximumFractionDigits: 2 });
  return JSON.stringify(value);
}
