// One instance of a saga: its steps, data, timers and history, and what an operator can tell it.

import { get, path } from "../api.js";
import { needs } from "../caller.js";
import { sheet } from "../dialogs.js";
import { el } from "../dom.js";
import { plain, pretty, when } from "../format.js";
import { failure, loading } from "../states.js";

const TONES = { completed: "sink", done: "sink", failed: "bad", stuck: "bad", aborted: "stateful", compensating: "stateful", started: "source" };
const KNOWN = new Set(["what", "at", "step", "command", "event_id"]);

export async function showInstance({ saga, id, state }, act) {
  const body = el("div", { class: "sheet-body" }, loading());
  const dialog = sheet(`${saga} ${plain(id)}`, body);
  try {
    const found = await get(path("sagas", saga, String(id)));
    body.replaceChildren(...parts(found), actions(found, state, (action) => { dialog.close(); act({ saga, id }, action); }));
  } catch (error) {
    body.replaceChildren(failure(error));
  }
}

function parts(found) {
  const facts = { State: found.state, Why: found.reason, Version: found.version === undefined ? "" : String(found.version), "Next timer": found.next_timer ? `${found.next_timer.name}, ${when(found.next_timer.at)}` : "" };
  const steps = Object.entries(found.steps || {});
  return [
    el("dl", { class: "fact-list" }, ...Object.entries(facts).filter(([, text]) => text).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })])),
    steps.length ? el("div", {}, el("h3", { text: "Steps" }), el("dl", { class: "fact-list" }, ...steps.flatMap(([name, step]) => [el("dt", { text: name }), el("dd", { text: typeof step === "object" ? Object.entries(step).map(([key, value]) => `${key} ${plain(value)}`).join(", ") : String(step) })]))) : null,
    el("div", {}, el("h3", { text: "History" }), el("ol", { class: "timeline" }, ...(found.history || []).map(entry))),
    el("div", {}, el("h3", { text: "Data" }), el("pre", { tabindex: 0, text: pretty(found.data ?? null) })),
  ].filter(Boolean);
}

function entry(one) {
  const rest = Object.entries(one).filter(([name, value]) => !KNOWN.has(name) && value !== null).map(([name, value]) => `${name} ${plain(value)}`);
  return el("li", { class: TONES[one.what] || "stateless" },
    el("b", { text: [one.what, one.step, one.command].filter(Boolean).join(" · ") }),
    el("small", { text: [one.at === undefined ? "" : when(one.at), one.event_id, ...rest].filter(Boolean).join(" · ") }));
}

function actions(found, state, act) {
  const ended = ["completed", "aborted"].includes(found.state);
  const button = (action, kind) => el("button", { type: "button", class: `button ${kind}`, text: action[0].toUpperCase() + action.slice(1), click: () => act(action) });
  const all = ended ? [] : found.state === "stuck" ? [button("retry", "primary"), button("skip", ""), button("abort", "danger")] : [button("abort", "danger")];
  needs("write", ...all).catch(() => {});
  return el("p", { class: "actions", "data-state": state }, ...all);
}
