// The statement of a query, the settings of its server, and its shadow.

import { get, path, post } from "../api.js";
import { needs } from "../caller.js";
import { copyButton } from "../clicks.js";
import { confirmed } from "../dialogs.js";
import { el } from "../dom.js";
import { failure, loading } from "../states.js";

export async function openSettings(root, query, signal) {
  root.append(loading());
  try {
    const found = await get(path("queries", query.name, "explain"), { signal });
    const own = found.statement ? [statement(found.statement)] : [program(query, signal), shadow(query)];
    root.replaceChildren(...own, settings(found.settings));
  } catch (error) {
    if (!signal.aborted) root.replaceChildren(failure(error));
  }
}

function statement(text) {
  return card("Statement", copyButton(text), el("pre", { text }));
}

function program(query, signal) {
  const { name } = query;
  const commands = ["potok diff PROGRAM", "potok explain PROGRAM", `potok checkpoints show ${name}`].join("\n");
  const result = el("div", { role: "status" });
  const compare = el("button", { type: "button", class: "button small", text: "Compare with the file", click: () => diff(name, compare, result) });
  needs("admin", compare).catch(() => {});
  const comparing = el("div", { hidden: true }, el("p", { class: "actions" }, compare), result);
  query.watch((snapshot) => (comparing.hidden = !snapshot?.actions?.includes("diff")), signal);
  return card("Program", copyButton(commands), comparing,
    el("p", { class: "soft", text: "The program on disk, compared with the one that ran last, and how its steps run:" }), el("pre", { text: commands }));
}

// What the file of the program changes; nothing is changed by asking, but the file is loaded.
async function diff(name, button, result) {
  if (!(await confirmed(`Compare ${name} with its file?`, "The server loads the program as it is on disk, in a process of its own. The query goes on as it is.", { action: "Compare" }))) return;
  button.disabled = true;
  result.replaceChildren(loading());
  try {
    const { changes, fits } = await post(path("queries", name, "diff"));
    const verdict = !changes.length ? "Nothing has changed since the query started."
      : fits ? "The state is compatible: the program resumes where it stopped." : "The state is not compatible: build new tables with a shadow.";
    const rows = changes.map((change) => el("li", {}, verdictOf(change), ` ${change.step}: ${change.what}`));
    result.replaceChildren(el("p", { text: verdict }), rows.length ? el("ul", { class: "changes" }, ...rows) : "");
  } catch (error) {
    result.replaceChildren(failure(error));
  } finally {
    button.disabled = false;
  }
}

function verdictOf({ fits }) {
  return el("span", { class: "pill small", "data-state": fits ? "running" : "failed" }, el("span", { class: "dot", "aria-hidden": "true" }), el("span", { text: fits ? "fits" : "does not fit" }));
}

function shadow({ latest }) {
  const base = latest?.shadow_of;
  const text = base
    ? `This query builds the tables of a changed program next to those of ${base}. When it has caught up, stop both and run:`
    : "To build the tables of a changed program next to the served ones, and then to replace them:";
  const commands = base ? "potok promote PROGRAM" : "potok run PROGRAM --shadow\npotok promote PROGRAM";
  return card(base ? `Shadow of ${base}` : "Shadow and promote", copyButton(commands), el("p", { class: "soft", text }), el("pre", { text: commands }),
    base ? el("p", {}, el("a", { href: `#${path("queries", base)}`, text: `Open ${base}` })) : null);
}

function settings(found) {
  const rows = Object.entries(found).flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value || "–" })]);
  return card("Settings of the server", null, el("dl", { class: "fact-list" }, ...rows));
}

function card(title, aside, ...content) {
  return el("section", { class: "card" }, el("div", { class: "card-head" }, el("h2", { text: title }), aside), ...content);
}
