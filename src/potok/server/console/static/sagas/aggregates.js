// Aggregates with their commands, states and events; open matches of patterns.

import { get, path } from "../api.js";
import { sheet } from "../dialogs.js";
import { el } from "../dom.js";
import { count } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure, loading } from "../states.js";

export async function openAggregates(root, signal) {
  root.append(loading());
  try {
    const { aggregates } = await get("/aggregates", { signal });
    root.replaceChildren(aggregates.length ? el("div", { class: "columns" }, ...aggregates.map(card)) : empty("No query has an aggregate", "A program declares one with builder.aggregate_root(…)."));
  } catch (error) {
    if (!signal.aborted) root.replaceChildren(failure(error));
  }
}

function card(aggregate) {
  return el("section", { class: "card" },
    el("div", { class: "card-head" }, el("h2", { text: aggregate.name }), el("p", { class: "aside", text: aggregate.query })),
    el("h3", { text: "Commands" }),
    el("ul", { class: "command-list" }, ...aggregate.commands.map((command) => el("li", {},
      el("button", { type: "button", class: "button small", text: command.name, click: () => sheet(command.name, command.doc ? el("p", { text: command.doc }) : null, el("pre", { tabindex: 0, text: JSON.stringify(command.schema, null, 2) })) })))),
    el("p", { class: "actions" },
      ...aggregate.tables.map((table) => el("a", { class: "button small", href: `#${path("tables", aggregate.query, table)}`, text: `States: ${table}` })),
      el("a", { class: "button small", href: `#${path("topics", aggregate.events)}`, text: `Events: ${aggregate.events}` })));
}

export async function openMatches(root, signal) {
  root.append(loading());
  const grid = new Grid({
    label: "Patterns", onOpen: (row) => (location.hash = `#${path("tables", row.query, row.table)}`),
    columns: [
      { title: "Pattern", width: "minmax(160px, 2fr)", min: 160, sort: (row) => row.table, cell: (row) => row.table.replace(/\.partials$/, "") },
      { title: "Query", min: 120, sort: (row) => row.query, cell: (row) => row.query },
      { title: "Keys with open matches", min: 120, number: true, sort: (row) => row.keys, cell: (row) => count(row.keys) },
    ],
  });
  try {
    const { patterns } = await get("/open-matches", { signal });
    root.replaceChildren(patterns.length ? el("section", { class: "card flush" }, grid.element) : empty("No query has a pattern", "Write MATCH_RECOGNIZE in SQL, or .match(…) in a program."));
    grid.show(patterns);
  } catch (error) {
    if (!signal.aborted) root.replaceChildren(failure(error));
  }
}
