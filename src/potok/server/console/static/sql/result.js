// The result of a statement: a message, a table, a chart or JSON; rows of a push query are added as they arrive.

import { csv, download } from "../clicks.js";
import { el, setText } from "../dom.js";
import { count, plain } from "../format.js";
import { Grid } from "../grid.js";
import { sheet } from "../dialogs.js";
import { sentence } from "../states.js";
import { chart } from "./chart.js";

const NUMBERS = /^(INT|INTEGER|BIGINT|DOUBLE|DECIMAL)/i;

export class Result {
  constructor(statement, { live = false } = {}) {
    Object.assign(this, { live, rows: [], received: 0, kind: "table" });
    this.title = el("code", { class: "statement", text: statement.replace(/\s+/g, " ").trim(), title: statement });
    this.number = el("span", { class: "aside" });
    this.body = el("div");
    this.buttons = el("div", { class: "result-buttons", role: "group", "aria-label": "Show as" });
    this.element = el("section", { class: "card flush result" }, el("div", { class: "card-head" }, this.title, this.number, this.buttons), this.body);
  }

  fill(found) {
    if (found.kind === "done") {
      this.body.replaceChildren(el("p", { class: "done", text: sentence(found.message || "done") }), ...(found.warnings || []).map((text) => el("p", { class: "soft done", text: sentence(text) })));
      return;
    }
    this.columns(found.columns);
    this.add(found.rows, Infinity);
    for (const [head, detail] of found.details || []) {
      const part = new Result(head);
      if (typeof detail === "string") part.body.append(el("pre", { text: detail }));
      else part.fill(detail);
      this.body.append(part.element);
    }
  }

  columns(columns) {
    this.heads = columns;
    this.grid = new Grid({
      label: "Result", height: this.live ? "420px" : "520px", onOpen: (row) => this.open(row),
      columns: columns.map((column, at) => ({
        title: column.name, min: 96, number: NUMBERS.test(column.type), sort: (row) => row[at],
        cell: (row) => plain(row[at]), width: NUMBERS.test(column.type) ? "minmax(96px, 1fr)" : "minmax(110px, 2fr)",
      })),
    });
    const kinds = [["table", "Table"], ...(this.canChart() ? [["chart", "Chart"]] : []), ["json", "JSON"]];
    this.buttons.replaceChildren(...kinds.map(([kind, text]) => el("button", { type: "button", class: "button small", "data-kind": kind, "aria-pressed": String(kind === this.kind), text, click: () => this.show(kind) })),
      el("button", { type: "button", class: "button small", text: "CSV", click: () => this.export() }));
    this.show("table");
  }

  canChart() {
    return this.heads.some((column) => NUMBERS.test(column.type) && column.name !== "WINDOWSTART" && column.name !== "WINDOWEND");
  }

  add(rows, most) {
    this.received += rows.length;
    this.rows = this.live ? [...rows.reverse(), ...this.rows].slice(0, most) : [...this.rows, ...rows];
    setText(this.number, `${count(this.received)} ${this.received === 1 ? "row" : "rows"}${this.live && this.received > this.rows.length ? `, the latest ${count(this.rows.length)} shown` : ""}`);
    this.due ||= requestAnimationFrame(() => { this.due = 0; this.draw(); });
  }

  show(kind) {
    this.kind = kind;
    for (const button of this.buttons.querySelectorAll("[data-kind]")) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    this.draw();
  }

  draw() {
    if (this.kind === "table") {
      if (this.main !== this.grid.element) this.place(this.grid.element);
      this.grid.show(this.rows);
    } else if (this.kind === "chart") this.place(chart(this.heads, this.live ? [...this.rows].reverse() : this.rows, (column) => NUMBERS.test(column.type)));
    else this.place(el("pre", { class: "json", tabindex: 0, text: JSON.stringify(this.rows.slice(0, 1_000).map((row) => this.named(row)), null, 1) }));
  }

  place(element) {
    if (this.main) this.main.replaceWith(element);
    else this.body.prepend(element);
    this.main = element;
  }

  named(row) {
    return Object.fromEntries(this.heads.map((column, at) => [column.name, row[at]]));
  }

  open(row) {
    sheet("Row", el("dl", { class: "fact-list" }, ...this.heads.flatMap((column, at) => [el("dt", { text: `${column.name} ${column.type}` }), el("dd", { class: "mono", text: plain(row[at]) })])));
  }

  export() {
    download("result.csv", csv([this.heads.map((column) => column.name), ...this.rows]), "text/csv");
  }
}
