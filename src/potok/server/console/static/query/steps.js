// The steps of a query as a table: how each runs, why, and what passes through it.

import { get, path } from "../api.js";
import { el } from "../dom.js";
import { compact, count, rate } from "../format.js";
import { Grid } from "../grid.js";
import { sheet } from "../dialogs.js";
import { failure, loading } from "../states.js";

export async function openSteps(root, query, signal) {
  root.append(loading());
  let steps = [];
  try {
    ({ steps } = await get(path("queries", query.name, "explain"), { signal }));
  } catch (error) {
    if (!signal.aborted) root.replaceChildren(failure(error));
    return;
  }
  const grid = new Grid({
    label: "Steps", rowHeight: 54, columns: COLUMNS, onOpen: show,
    tone: (step) => (step.late ? "warn" : ""),
  });
  const native = steps.filter((step) => step.runs === "native").length;
  root.replaceChildren(el("section", { class: "card flush" },
    el("div", { class: "card-head" }, el("h2", { text: "Steps" }), el("p", { class: "aside", text: `${native} of ${steps.length} run natively` })), grid.element));
  grid.show(steps.map((step) => ({ ...step, in: null, out: null })));
  query.watch((snapshot) => {
    if (snapshot) grid.show(steps.map((step) => ({ ...step, ...snapshot.steps?.[step.name] })));
  }, signal);
}

const COLUMNS = [
  { title: "Step", width: "minmax(180px, 1.4fr)", min: 180, sort: (step) => step.name, cell: (step) => el("div", { class: "two" }, el("b", { text: step.name }), el("small", { text: step.kind.replaceAll("_", " ") })) },
  { title: "Runs", width: "86px", min: 86, sort: (step) => step.runs, cell: (step) => el("span", { class: `mode ${step.runs}`, text: step.runs }) },
  { title: "Why, and what it computes", width: "minmax(180px, 2fr)", min: 180, wide: true, cell: (step) => step.reason || step.expressions.join("; ") || step.detail || "" },
  { title: "In", width: "84px", min: 84, number: true, sort: (step) => step.in, cell: (step) => compact(step.in) },
  { title: "Out", width: "84px", min: 84, number: true, sort: (step) => step.out, cell: (step) => compact(step.out) },
  { title: "Per second", width: "92px", min: 92, number: true, wide: true, sort: (step) => step.rate, cell: (step) => rate(step.rate) },
  { title: "Late", width: "70px", min: 70, number: true, wide: true, sort: (step) => step.late, cell: (step) => count(step.late) },
];

function show(step) {
  const facts = { Kind: step.kind.replaceAll("_", " "), Runs: step.reason ? `${step.runs}: ${step.reason}` : step.runs, Detail: step.detail, Topic: step.topic,
    Key: step.key, Value: step.value, Expressions: step.expressions.join("\n"), "After": step.upstreams.join(", "), Guarantee: step.guarantee, "Declared at": step.at };
  sheet(step.name, el("dl", { class: "fact-list" }, ...Object.entries(facts).filter(([, value]) => value).flatMap(([name, value]) =>
    [el("dt", { text: name }), el("dd", { text: String(value) })])));
}
