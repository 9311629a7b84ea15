// Finds the view for the address and opens it; draws the navigation.

import { onUnauthorized } from "./api.js";
import { byId, el } from "./dom.js";
import { askForToken } from "./dialogs.js";
import { failure } from "./states.js";

const VIEWS = [
  { path: "", title: "Overview", load: () => import("./views/overview.js") },
  { path: "queries", title: "Query", hidden: true, load: () => import("./views/query.js") },
  { path: "topics", title: "Topics", load: () => import("./views/topics.js") },
  { path: "tables", title: "Tables", load: () => import("./views/tables.js") },
  { path: "sql", title: "SQL", load: () => import("./views/sql.js") },
  { path: "dead-letters", title: "Dead letters", load: () => import("./views/dead-letters.js") },
  { path: "sagas", title: "Sagas", load: () => import("./views/sagas.js") },
  { path: "sources", title: "Sources and sinks", load: () => import("./views/sources.js") },
  { path: "cluster", title: "Cluster", load: () => import("./views/cluster.js") },
];

const view = byId("view");
let opened = new AbortController();

// `#/topics/orders?key=a` is the view `topics` with the parts ["orders"] and the parameters {key: "a"}.
function address() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map(decodePart);
  return { name, parts, params: new URLSearchParams(search) };
}

function decodePart(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

async function open() {
  opened.abort();
  const mine = (opened = new AbortController());
  const { name, parts, params } = address();
  const found = VIEWS.find((each) => each.path === name) || VIEWS[0];
  mark(found);
  document.title = `${found.title} · Potok`;
  document.body.removeAttribute("data-state");
  byId("lost").hidden = true;
  delete document.body.dataset.connection;
  try {
    const module = await found.load();
    if (mine.signal.aborted) return;
    view.replaceChildren();
    view.dataset.view = found.path || "overview";
    await module.open(view, { parts, params, signal: mine.signal });
  } catch (error) {
    if (!mine.signal.aborted) view.replaceChildren(failure(error, open));
  }
}

function mark(found) {
  const shown = found.path === "queries" ? VIEWS[0] : found;
  for (const link of byId("nav").children) {
    if (link.dataset.path === shown.path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("nav").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

byId("nav").append(...VIEWS.filter((each) => !each.hidden).map((each) =>
  el("a", { href: `#/${each.path}`, "data-path": each.path, text: each.title })));
byId("skip").addEventListener("click", () => view.focus());
onUnauthorized(askForToken);
addEventListener("hashchange", () => {
  open();
  scrollTo(0, 0);
});
open();
