// One table: search, live updates, versions of a row, export.

import { follow, get, path } from "../api.js";
import { csv, download } from "../clicks.js";
import { notifyOf } from "../dialogs.js";
import { el, setText } from "../dom.js";
import { clock, count, plain, when } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure, loading } from "../states.js";
import { showRow } from "./row.js";

const LIMIT = 10_000;
const EXPORT_LIMIT = 100_000;
const MOST_COLUMNS = 12;
const KINDS = [["find", "Key contains"], ["key", "Key is"], ["prefix", "Key begins with"], ["range", "Keys from … to"]];

export async function openTable(root, query, name, { params, signal }) {
  let about;
  try {
    const { tables } = await get(path("queries", query, "tables"), { signal });
    about = tables.find((each) => each.table === name) || tables.find((each) => each.table.toUpperCase() === name.toUpperCase());
  } catch (error) {
    root.append(failure(error));
    return;
  }
  if (!about) {
    root.append(empty("There is no such table", `Query ${query} has no table ${name}.`, el("a", { class: "button", href: "#/tables", text: "All tables" })));
    return;
  }
  new TableView(root, about, params, signal).start();
}

class TableView {
  constructor(root, about, params, signal) {
    Object.assign(this, { root, about, signal, asked: 0, rows: new Map(), path: path("queries", about.query, "tables", about.table) });
    const input = (label, more = {}) => el("input", { type: "text", "aria-label": label, autocomplete: "off", spellcheck: "false", input: () => this.search(), ...more });
    this.kind = el("select", { "aria-label": "Search", change: () => this.shape() }, ...KINDS.map(([value, text]) => el("option", { value, text })));
    this.text = input("Key", { class: "grow", value: params.get("key") || "" });
    if (params.get("key")) this.kind.value = "key";
    this.high = input("End key", { class: "grow", placeholder: "end (exclusive)", hidden: true });
    const instant = (label) => input(label, { type: "datetime-local", step: "1" });
    this.from = instant("Windows from");
    this.to = instant("Windows to");
    this.asOf = instant("As of");
    this.live = el("input", { type: "checkbox", change: () => this.follow() });
    this.foot = el("p", { class: "foot soft" });
    this.body = el("div", {}, loading());
  }

  start() {
    const { about } = this;
    const facts = [about.query, `keys ${about.key_type}`, about.window ? `${about.window} windows` : "", about.history_ms ? "with versions" : ""].filter(Boolean);
    this.root.append(
      el("div", { class: "view-head" },
        el("h1", {}, el("a", { class: "crumb", href: "#/tables", text: "Tables" }), " / ", about.table, el("small", { text: facts.join(" · ") })),
        el("a", { class: "button small", href: `#${path("queries", about.query)}`, text: "Open the query" }),
        el("button", { type: "button", class: "button small", text: "Export CSV", click: () => this.export("csv") }),
        el("button", { type: "button", class: "button small", text: "Export JSON", click: () => this.export("json") })),
      el("div", { class: "toolbar" }, field("Search", this.kind), this.text, this.high,
        about.window ? field("Windows from", this.from) : null, about.window ? field("to", this.to) : null,
        about.history_ms ? field("As of", this.asOf) : null,
        el("label", { class: "check" }, this.live, "live")),
      el("section", { class: "card flush" }, this.body), this.foot);
    this.shape();
  }

  shape() {
    this.high.hidden = this.kind.value !== "range";
    this.text.placeholder = this.kind.value === "range" ? "first key" : "";
    this.search();
  }

  wanted(limit) {
    const kind = this.kind.value;
    const ms = (input) => (input.value ? new Date(input.value).getTime() : "");
    const keys = kind === "range" ? { from: this.text.value, to: this.high.value } : { [kind]: this.text.value };
    return { ...keys, limit, window_from: ms(this.from), window_to: ms(this.to), as_of: ms(this.asOf) };
  }

  async search() {
    const number = (this.asked += 1);
    try {
      const found = await get(this.path, { signal: this.signal, params: this.wanted(LIMIT) });
      if (number !== this.asked) return; // a later key stroke asked again
      this.rows = new Map(found.rows.map((row) => [keyOf(row), row]));
      this.more = found.more;
      this.fill(found.batch);
    } catch (error) {
      if (!this.signal.aborted && number === this.asked) this.body.replaceChildren(failure(error));
    }
  }

  fill(batch) {
    const rows = [...this.rows.values()];
    if (!rows.length) {
      this.body.replaceChildren(empty(this.text.value || this.from.value || this.to.value ? "No row is like this" : "No rows yet"));
      setText(this.foot, "");
      return;
    }
    const names = fieldsOf(rows);
    if (!this.grid || names.join() !== this.names) {
      this.names = names.join();
      this.grid = new Grid({ label: `Rows of ${this.about.table}`, columns: this.columns(names), onOpen: (row) => showRow(this.about, this.path, row) });
    }
    if (this.body.firstChild !== this.grid.element) this.body.replaceChildren(this.grid.element);
    this.grid.show(rows);
    setText(this.foot, `${this.more ? "The first " : ""}${count(rows.length)} ${rows.length === 1 ? "row" : "rows"}, as of batch ${count(batch)}`);
  }

  columns(names) {
    const number = (value) => typeof value === "number";
    const some = [...this.rows.values()].slice(0, 50);
    const values = names.length
      ? names.map((name) => ({ title: name, min: 90, number: some.every(({ value }) => number(value?.[name]) || value?.[name] === null || value?.[name] === undefined), sort: (row) => row.value?.[name], cell: (row) => cellText(row.value?.[name]) }))
      : [{ title: "Value", width: "minmax(120px, 3fr)", min: 120, mono: !some.every((row) => number(row.value)), number: some.every((row) => number(row.value)), sort: (row) => row.value, cell: (row) => cellText(row.value) }];
    return [
      ...(this.about.window ? [{ title: "Window", width: "minmax(150px, 260px)", min: 150, sort: (row) => row.start, cell: windowText }] : []),
      { title: "Key", width: "minmax(110px, 1.6fr)", min: 110, sort: (row) => row.key, cell: (row) => plain(row.key) }, ...values,
    ];
  }

  follow() {
    this.following?.abort();
    if (!this.live.checked) return;
    this.following = new AbortController();
    this.signal.addEventListener("abort", () => this.following.abort(), { once: true });
    follow(`${this.path}/changes`, {
      signal: this.following.signal,
      onData: (change, kind) => {
        if (kind === "gap" || !this.grid) return this.search();
        this.change(change);
      },
      onBack: () => this.search(),
      onError: (error) => { this.live.checked = false; notifyOf(error); },
    });
  }

  // Rows change in place; whether a new row belongs here is for the server to say.
  change(change) {
    const key = keyOf(change);
    if (this.rows.has(key) && !change.deleted && !this.asOf.value) {
      this.rows.set(key, change);
      this.due ||= requestAnimationFrame(() => {
        this.due = 0;
        this.fill(change.batch);
      });
    } else if (!this.again) this.again = setTimeout(() => { this.again = 0; this.search(); }, 300);
  }

  async export(kind) {
    try {
      const { rows } = await get(this.path, { signal: this.signal, params: this.wanted(EXPORT_LIMIT) });
      const file = `${this.about.query}-${this.about.table}`.replace(/[^\w.-]+/g, "_");
      if (kind === "json") return download(`${file}.json`, JSON.stringify(rows, null, 1), "application/json");
      const names = fieldsOf(rows);
      const head = [...(this.about.window ? ["window_start", "window_end"] : []), "key", ...(names.length ? names : ["value"])];
      const lines = rows.map((row) => [...(this.about.window ? [row.start, row.end] : []), row.key, ...(names.length ? names.map((name) => row.value?.[name]) : [row.value])]);
      download(`${file}.csv`, csv([head, ...lines]), "text/csv");
    } catch (error) {
      notifyOf(error);
    }
  }
}

function field(title, input) {
  return el("label", { class: "field" }, title, input);
}

function fieldsOf(rows) {
  const objects = rows.slice(0, 50).map((row) => row.value).filter((value) => value !== null && value !== undefined);
  if (!objects.length || objects.some((value) => typeof value !== "object" || Array.isArray(value))) return [];
  const names = [...new Set(objects.flatMap(Object.keys))];
  return names.length <= MOST_COLUMNS ? names : [];
}

const keyOf = (row) => JSON.stringify([row.key, row.start, row.end]);
const cellText = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 4 }) : value === undefined ? "" : plain(value));
const windowText = ({ start, end }) => `${when(start).slice(0, 19)} – ${clock(end)}`;
