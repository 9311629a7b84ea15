// Pause, resume, restart and terminate a query.

import { path, post, remove } from "../api.js";
import { needs } from "../caller.js";
import { confirmed, notify, notifyOf } from "../dialogs.js";
import { el } from "../dom.js";

export function actions(query) {
  const pause = button("Pause", () => act("pause", "Pause", "Its records wait in the log until it is resumed."));
  const resume = button("Resume", () => act("resume", "Resume"));
  const restart = button("Restart", () => act("restart", "Restart", "It resumes at its last committed batch: nothing is lost and nothing is written twice."));
  const terminate = button("Terminate", () => end(), "danger");
  const element = el("div", { class: "query-actions", hidden: true }, resume, pause, restart, terminate);
  needs("admin", pause, resume, restart, terminate).catch(() => {});

  async function act(action, title, text = "") {
    if (text && !(await confirmed(`${title} ${query.name}?`, text, { action: title }))) return;
    try {
      const { message } = await post(path("queries", query.name, action));
      notify(message);
    } catch (error) {
      notifyOf(error);
    }
  }

  async function end() {
    const text = "The query stops for good and its tables are removed; the records that it has written are kept.";
    if (!(await confirmed(`Terminate ${query.name}?`, text, { action: "Terminate", danger: true }))) return;
    try {
      notify((await remove(path("queries", query.name))).message);
      location.hash = "#/";
    } catch (error) {
      notifyOf(error);
    }
  }

  return {
    element,
    update({ kind, state, actions: allowed = [] }) {
      element.hidden = !allowed.length;
      pause.hidden = !allowed.includes("pause") || state === "paused";
      resume.hidden = !allowed.includes("resume") || state !== "paused";
      restart.hidden = !allowed.includes("restart") || state === "paused";
      terminate.hidden = !allowed.includes("terminate");
      element.dataset.kind = kind;
    },
  };
}

function button(text, click, kind = "") {
  return el("button", { type: "button", class: `button small ${kind}`, text, click });
}
