// Sagas, aggregates and open matches of patterns.

import { get, path, post } from "../api.js";
import { tabs } from "../clicks.js";
import { confirmed, notify, notifyOf } from "../dialogs.js";
import { el, setText } from "../dom.js";
import { plain, when } from "../format.js";
import { Grid } from "../grid.js";
import { openAggregates, openMatches } from "../sagas/aggregates.js";
import { showInstance } from "../sagas/instance.js";
import { empty, failure, loading } from "../states.js";

const REFRESH_MS = 3_000;
const LIMIT = 1_000;
const STATES = ["stuck", "aborting", "running", "aborted", "completed"];

export async function open(root, { params, signal }) {
  root.append(el("div", { class: "view-head" }, el("h1", { text: "Sagas, aggregates and patterns" })));
  const all = [
    { name: "sagas", title: "Sagas", open: openSagas },
    { name: "aggregates", title: "Aggregates", open: openAggregates },
    { name: "patterns", title: "Patterns", open: openMatches },
  ];
  const found = tabs("Kinds", all, params.get("tab"), (tab) => history.replaceState(null, "", tab === "sagas" ? "#/sagas" : `#/sagas?tab=${tab}`));
  root.append(found.element);
  signal.addEventListener("abort", found.close, { once: true });
}

async function openSagas(root, signal) {
  const saga = el("select", { "aria-label": "Saga", change: () => refresh() }, el("option", { value: "", text: "all sagas" }));
  const chips = el("div", { class: "chips", role: "group", "aria-label": "State" });
  const about = el("p", { class: "soft" });
  const body = el("div", {}, loading());
  const grid = new Grid({ label: "Instances", rowHeight: 50, columns: COLUMNS, tone: (row) => (row.state === "stuck" ? "bad" : row.state === "aborting" ? "warn" : ""), onOpen: (row) => showInstance(row, act) });
  root.append(el("div", { class: "toolbar" }, saga, chips), about, el("section", { class: "card flush" }, body));
  let state = "";

  const buttons = STATES.map((name) => el("button", { type: "button", class: "chip", "data-saga": name, "aria-pressed": "false", text: name, click: () => {
    state = state === name ? "" : name;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.saga === state));
    refresh();
  } }));
  chips.append(...buttons);

  async function refresh() {
    try {
      const found = await get("/sagas", { signal, params: { state, saga: saga.value, limit: LIMIT } });
      choices(found.sagas);
      if (!found.sagas.length) body.replaceChildren(empty("No query has a saga", "A program declares one with builder.saga(…)."));
      else if (!found.instances.length) body.replaceChildren(empty(state ? `No instance is ${state}` : "No instances yet"));
      else if (body.firstChild !== grid.element) body.replaceChildren(grid.element);
      grid.show(found.instances);
      const chosen = found.sagas.find((one) => one.name === saga.value);
      setText(about, chosen ? `${chosen.name} of ${chosen.query}, by ${chosen.by}: ${chosen.steps}` : "");
    } catch (error) {
      if (!signal.aborted) body.replaceChildren(failure(error, refresh));
    }
  }

  function choices(sagas) {
    const names = sagas.map((one) => one.name);
    if ([...saga.options].slice(1).map((option) => option.value).join() === names.join()) return;
    saga.replaceChildren(saga.options[0], ...names.map((name) => el("option", { value: name, text: name })));
  }

  async function act({ saga: name, id }, action) {
    const what = { retry: "It repeats the step that it is stuck at.", skip: "It goes on as if the step had succeeded.", abort: "It undoes its steps in reverse order." };
    if (!(await confirmed(`${action[0].toUpperCase()}${action.slice(1)} ${plain(id)}?`, what[action], { action, danger: action !== "retry" }))) return;
    try {
      await post(path("sagas", name, String(id), action));
      notify(`${plain(id)} will ${action} with its next batch`);
      refresh();
    } catch (error) {
      notifyOf(error);
    }
  }

  await refresh();
  const timer = setInterval(refresh, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

const COLUMNS = [
  { title: "Instance", width: "minmax(110px, 1.5fr)", min: 110, cell: (row) => el("div", { class: "two" }, el("b", { text: plain(row.id) }), el("small", { text: row.saga })) },
  { title: "State", width: "104px", min: 96, cell: (row) => el("span", { class: "chip small", "data-saga": row.state, text: row.state }) },
  { title: "Steps", width: "minmax(110px, 1.4fr)", min: 110, wide: true, cell: (row) => (row.steps || []).join(", ") },
  { title: "Why", width: "minmax(140px, 2.4fr)", min: 140, cell: (row) => row.reason || "" },
  { title: "Next timer", width: "minmax(150px, 220px)", min: 150, wide: true, cell: (row) => timer(row.next_timer) },
];

function timer(next) {
  if (next === null || next === undefined) return "–";
  return typeof next === "object" ? `${next.name}, ${when(next.at)}` : when(next);
}
