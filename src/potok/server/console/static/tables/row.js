// One row in full, and its versions.

import { get } from "../api.js";
import { copyButton } from "../clicks.js";
import { sheet } from "../dialogs.js";
import { el } from "../dom.js";
import { plain, pretty, when } from "../format.js";
import { failure } from "../states.js";

export async function showRow(about, tablePath, row) {
  const facts = { Query: about.query, Table: about.table, Key: plain(row.key) };
  if (row.start !== undefined) facts.Window = `${when(row.start)} – ${when(row.end)}`;
  const versions = el("div", {});
  sheet(plain(row.key),
    el("dl", { class: "fact-list" }, ...Object.entries(facts).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })])),
    el("div", {}, el("div", { class: "card-head" }, el("h3", { text: "Value" }), copyButton(pretty(row.value))), el("pre", { tabindex: 0, text: pretty(row.value) })), versions);
  if (!about.history_ms) return;
  try {
    const found = await get(`${tablePath}/history`, { params: { key: plain(row.key) } });
    versions.append(el("h3", { text: "Versions, the newest first" }),
      el("ul", { class: "timeline" }, ...found.versions.reverse().map(({ since_ms: since, value }) =>
        el("li", { class: value === null ? "bad" : "stateful" }, el("small", { text: `from ${when(since)}` }), el("code", { text: value === null ? "deleted" : plain(value) })))));
  } catch (error) {
    versions.append(failure(error));
  }
}
