// The tables of the query: a list, and a look into one of them.

import { get, path, withParams } from "../api.js";
import { byId, el, setText } from "../dom.js";
import { clock, count } from "../format.js";
import { sheet } from "../dialogs.js";

const REFRESH_MS = 2_000;

export class Tables {
  constructor(query) {
    this.query = query;
    this.list = el("ul", { id: "tables" });
    this.none = el("p", { class: "empty", id: "tables-empty", hidden: true, text: "This query keeps no table." });
    this.element = el("section", { class: "card tables", "aria-labelledby": "tables-title" },
      el("div", { class: "card-head" }, el("h2", { id: "tables-title", text: "Tables" })), this.list, this.none);
    this.asked = 0;
  }

  show({ tables }) {
    this.none.hidden = tables.length > 0;
    this.list.replaceChildren(...tables.map((table) =>
      el("li", {}, el("button", { type: "button", "data-table": table.name, click: () => this.open(table) },
        el("span", { class: "table-name", text: table.name }), el("span", { class: "table-rows" }),
        el("span", { class: "table-kind", text: table.kind })))));
  }

  update(sizes) {
    for (const button of this.list.querySelectorAll("button")) {
      const rows = sizes?.[button.dataset.table];
      setText(button.children[1], rows === undefined ? "" : `${count(rows)} rows`);
    }
  }

  open(table) {
    this.table = table;
    this.find = el("input", { id: "browse-find", type: "search", placeholder: "Find a key", "aria-label": "Find a key", autocomplete: "off", spellcheck: "false", input: () => this.refresh() });
    this.rows = el("tbody", { id: "browse-rows" });
    this.foot = el("p", { class: "foot", id: "browse-foot" });
    this.empty = el("p", { class: "empty", id: "browse-empty", hidden: true, text: "No row here yet." });
    const columns = table.windowed ? ["Window", "Key", "Value"] : ["Key", "Value"];
    const head = el("tr", {}, ...columns.map((text) => el("th", { scope: "col", text })));
    const all = el("a", { class: "button small", href: `#${path("tables", this.query, table.name)}`, text: "Open the table" });
    this.dialog = sheet(table.name, el("div", { class: "toolbar" }, this.find, all),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows" },
        el("table", {}, el("thead", { id: "browse-head" }, head), this.rows), this.empty), this.foot);
    this.dialog.id = "browse";
    this.dialog.addEventListener("close", () => clearTimeout(this.timer));
    this.find.focus();
    this.refresh();
  }

  async refresh() {
    clearTimeout(this.timer);
    const number = (this.asked += 1);
    try {
      const data = await get(withParams(path("queries", this.query, "tables", this.table.name), { limit: 100, find: this.find.value }));
      if (number !== this.asked) return; // a later key stroke asked again
      this.fill(data);
    } catch (error) {
      setText(this.foot, error instanceof TypeError ? "The server does not answer; trying again." : error.message);
    }
    if (byId("browse")) this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  fill({ rows, more }) {
    this.empty.hidden = rows.length > 0;
    this.rows.replaceChildren(...rows.map((row) => this.row(row)));
    setText(this.foot, more ? `The first ${count(rows.length)} rows; type a part of a key to find others.` : `${count(rows.length)} rows`);
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
