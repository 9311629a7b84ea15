// The tables of all queries, and one of them.

import { get, path } from "../api.js";
import { el } from "../dom.js";
import { compact, count, duration } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure, loading } from "../states.js";

const REFRESH_MS = 4_000;

export async function open(root, given) {
  const [query, table] = given.parts;
  if (query && table) {
    const { openTable } = await import("../tables/table.js");
    return openTable(root, query, table, given);
  }
  return openList(root, given);
}

async function openList(root, { signal }) {
  const find = el("input", { type: "search", class: "grow", placeholder: "Find a table", "aria-label": "Find a table", autocomplete: "off", spellcheck: "false", input: () => fill() });
  const number = el("p", { class: "aside" });
  const body = el("div", {}, loading());
  const grid = new Grid({ label: "Tables", rowHeight: 50, columns: COLUMNS, onOpen: (row) => (location.hash = `#${path("tables", row.query, row.table)}`) });
  root.append(el("div", { class: "view-head" }, el("h1", { text: "Tables" })), el("div", { class: "toolbar" }, find, number), el("section", { class: "card flush" }, body));
  let tables = [];

  function fill() {
    const wanted = find.value.trim().toLowerCase();
    const shown = tables.filter((row) => `${row.table} ${row.query}`.toLowerCase().includes(wanted));
    grid.show(shown);
    number.textContent = `${count(shown.length)} ${shown.length === 1 ? "table" : "tables"}`;
    if (!tables.length) body.replaceChildren(empty("No tables yet", "CREATE TABLE … AS SELECT makes one, and so do .count(name=…) and .aggregate(…) in a program."));
    else if (!shown.length) body.replaceChildren(empty("No table has this in its name"));
    else if (body.firstChild !== grid.element) body.replaceChildren(grid.element);
  }

  async function refresh() {
    try {
      ({ tables } = await get("/query-tables", { signal }));
      fill();
    } catch (error) {
      if (!signal.aborted) body.replaceChildren(failure(error, refresh));
    }
  }

  await refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

const COLUMNS = [
  { title: "Table", width: "minmax(150px, 2fr)", min: 150, sort: (row) => row.table, cell: (row) => el("div", { class: "two" }, el("b", { text: row.table }), el("small", { text: row.query })) },
  { title: "Keys", width: "90px", min: 80, number: true, sort: (row) => row.keys, cell: (row) => compact(row.keys) },
  { title: "Windows", width: "minmax(90px, 130px)", min: 90, sort: (row) => row.window_ms, cell: windows },
  { title: "Versions", width: "90px", min: 90, wide: true, cell: (row) => (row.history_ms ? duration(row.history_ms) : "–") },
  { title: "Key type", width: "minmax(90px, 1fr)", min: 90, wide: true, cell: (row) => row.key_type },
  { title: "Value type", width: "minmax(140px, 3fr)", min: 140, wide: true, mono: true, cell: (row) => row.value_type },
];

function windows(row) {
  if (row.open_matches) return "open matches";
  if (!row.window) return "–";
  return row.window_ms ? duration(row.window_ms) : row.window;
}
