// The statement of a query, the settings of its server, and its shadow.

import { get, path } from "../api.js";
import { copyButton } from "../clicks.js";
import { el } from "../dom.js";
import { failure, loading } from "../states.js";

export async function openSettings(root, query, signal) {
  root.append(loading());
  try {
    const found = await get(path("queries", query.name, "explain"), { signal });
    const own = found.statement ? [statement(found.statement)] : [program(query.name), shadow(query)];
    root.replaceChildren(...own, settings(found.settings));
  } catch (error) {
    if (!signal.aborted) root.replaceChildren(failure(error));
  }
}

function statement(text) {
  return card("Statement", copyButton(text), el("pre", { text }));
}

function program(name) {
  const commands = ["potok diff PROGRAM", "potok explain PROGRAM", `potok checkpoints show ${name}`].join("\n");
  return card("Program", copyButton(commands), el("p", { class: "soft", text: "The program on disk, compared with the one that ran last, and how its steps run:" }), el("pre", { text: commands }));
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
