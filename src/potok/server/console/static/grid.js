// A table of any length: only the rows in view are in the document.

import { el, setText } from "./dom.js";
import { markOverflow } from "./overflow.js";

const AROUND = 12; // rows above and below the view
const NARROW = 720;

// Columns: {title, cell(row) -> text or node, width (a CSS grid track), min (pixels), number, wide (left out where it is
// narrow), sort(row) -> what to compare}.
export class Grid {
  constructor({ label, columns, rowHeight = 36, onOpen = null, keyOf = null, height = null, selectable = false, onSelect = () => {}, tone = null }) {
    Object.assign(this, { columns, rowHeight, onOpen, keyOf, selectable, onSelect, tone });
    this.rows = [];
    this.shown = [];
    this.nodes = new Map();
    this.active = -1;
    this.order = null;
    this.chosen = new Set();
    this.head = el("div", { class: "grid-head", role: "row" });
    this.body = el("div", { class: "grid-body", role: "rowgroup" });
    this.inner = el("div", { class: "grid-inner" }, this.head, this.body);
    this.element = el("div", { class: "grid-view", role: "grid", tabindex: 0, "aria-label": label,
      keydown: (event) => this.key(event) }, this.inner);
    if (height) this.element.style.maxHeight = height;
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.arrange()).observe(this.element);
    markOverflow([this.element]);
  }

  arrange() {
    const narrow = this.element.clientWidth < NARROW;
    const first = this.narrow === undefined;
    if (narrow !== this.narrow || first) {
      this.narrow = narrow;
      this.now = this.columns.filter((column) => !(narrow && column.wide));
      const tracks = this.now.map((column) => column.width || `minmax(${column.min || 90}px, 1fr)`);
      if (this.selectable) tracks.unshift("34px");
      this.inner.style.setProperty("--tracks", tracks.join(" "));
      this.inner.style.minWidth = `${this.now.reduce((sum, column) => sum + (column.min || 90) + 12, this.selectable ? 34 : 0)}px`;
      this.body.replaceChildren();
      this.nodes.clear();
      this.drawHead();
    }
    this.draw();
  }

  drawHead() {
    const cells = this.now.map((column) => {
      const attributes = { role: "columnheader", class: column.number ? "num" : "" };
      if (!column.sort) return el("div", { ...attributes, text: column.title });
      const direction = this.order?.column === column ? this.order.direction : 0;
      return el("div", { ...attributes, "aria-sort": direction > 0 ? "ascending" : direction < 0 ? "descending" : "none" },
        el("button", { type: "button", text: column.title, click: () => this.sortBy(column) }));
    });
    if (this.selectable) cells.unshift(el("div", { role: "columnheader" }, this.checkbox("Select all", () => this.selectAll())));
    this.head.replaceChildren(...cells);
  }

  sortBy(column) {
    const direction = this.order?.column === column ? -this.order.direction : column.number ? -1 : 1;
    this.order = { column, direction };
    this.drawHead();
    this.show(this.rows);
  }

  show(rows) {
    this.rows = rows;
    this.shown = rows;
    if (this.order) {
      const { column, direction } = this.order;
      this.shown = [...rows].sort((a, b) => direction * compare(column.sort(a), column.sort(b)));
    }
    this.element.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.body.style.height = `${this.shown.length * this.rowHeight}px`;
    if (this.active >= this.shown.length) this.active = this.shown.length - 1;
    for (const node of this.nodes.values()) node.stale = true;
    if (this.now) this.draw();
  }

  draw() {
    if (!this.now) return;
    const top = Math.max(0, this.element.scrollTop);
    const first = Math.max(0, Math.floor(top / this.rowHeight) - AROUND);
    const last = Math.min(this.shown.length, Math.ceil((top + (this.element.clientHeight || 600)) / this.rowHeight) + AROUND);
    for (const [index, node] of this.nodes) {
      if (index < first || index >= last) {
        node.remove();
        this.nodes.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      let node = this.nodes.get(index);
      if (!node) {
        node = this.makeRow(index);
        this.nodes.set(index, node);
        this.body.append(node);
      } else if (node.stale) this.fill(node, this.shown[index]);
      node.stale = false;
      node.setAttribute("aria-selected", String(index === this.active));
    }
  }

  makeRow(index) {
    const node = el("div", { class: "grid-row", role: "row", id: `${this.id()}-${index}`, "aria-rowindex": index + 2,
      click: (event) => this.click(event, index) });
    node.style.transform = `translateY(${index * this.rowHeight}px)`;
    node.style.height = `${this.rowHeight}px`;
    if (this.onOpen) node.classList.add("opens");
    this.fill(node, this.shown[index]);
    return node;
  }

  fill(node, row) {
    const old = [...node.children];
    const cells = this.now.map((column, place) => {
      const content = column.cell(row);
      const known = old[place + (this.selectable ? 1 : 0)];
      const text = content instanceof Node ? null : String(content ?? "");
      if (known && text !== null && !known.firstElementChild) {
        setText(known, text);
        known.title = text.length > 12 ? text : "";
        return known;
      }
      const cell = el("div", { role: "gridcell", class: [column.number && "num", column.mono && "mono"].filter(Boolean).join(" ") });
      if (text === null) cell.append(content);
      else { cell.textContent = text; if (text.length > 12) cell.title = text; }
      return cell;
    });
    if (this.selectable) {
      const box = this.checkbox("Select", () => this.select(row));
      box.checked = this.chosen.has(this.keyOf(row));
      cells.unshift(el("div", { role: "gridcell" }, box));
    }
    if (this.tone) node.dataset.tone = this.tone(row) || "";
    if (cells.some((cell, place) => cell !== old[place])) node.replaceChildren(...cells);
  }

  checkbox(label, change) {
    return el("input", { type: "checkbox", "aria-label": label, tabindex: -1, change });
  }

  select(row) {
    const key = this.keyOf(row);
    if (!this.chosen.delete(key)) this.chosen.add(key);
    this.show(this.rows);
    this.onSelect(this.chosen);
  }

  selectAll() {
    const all = this.chosen.size < this.rows.length;
    this.chosen = new Set(all ? this.rows.map(this.keyOf) : []);
    this.show(this.rows);
    this.onSelect(this.chosen);
  }

  click(event, index) {
    if (event.target.closest("a, button, input")) return;
    this.activate(index);
    this.onOpen?.(this.shown[index]);
  }

  key(event) {
    if (event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) {
      event.preventDefault();
      this.activate(Math.min(this.shown.length - 1, Math.max(0, this.active + moves[event.key])));
    } else if (event.key === "Enter" && this.active >= 0) {
      event.preventDefault(); // or the key would press the button that gets the focus in a dialog
      this.onOpen?.(this.shown[this.active]);
    }
    if (event.key === " " && this.selectable && this.active >= 0) {
      event.preventDefault();
      this.select(this.shown[this.active]);
    }
  }

  activate(index) {
    if (!this.shown.length) return;
    this.active = index;
    const [top, bottom] = [index * this.rowHeight, (index + 1) * this.rowHeight + this.head.offsetHeight];
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = bottom - clientHeight;
    this.draw();
    this.element.setAttribute("aria-activedescendant", `${this.id()}-${index}`);
  }

  id() {
    return (this.name ||= `grid-${Math.random().toString(36).slice(2, 8)}`);
  }
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return typeof a === "string" ? a.localeCompare(b) : a - b;
}
