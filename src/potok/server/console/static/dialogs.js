// Questions to the user: confirm a change, type a token; and short notices of what was done.

import { byId, el } from "./dom.js";
import { sentence } from "./states.js";

const NOTICE_MS = 6_000;

export function ask(title, body, { action = "OK", danger = false, cancel = "Cancel" } = {}) {
  return new Promise((resolve) => {
    const go = el("button", { class: danger ? "button danger" : "button primary", value: "yes", text: action });
    const dialog = el("dialog", { class: "question", "aria-labelledby": "question-title" },
      el("form", { method: "dialog" },
        el("h2", { id: "question-title", text: title }), ...[body].flat(),
        el("p", { class: "actions" }, cancel ? el("button", { class: "button", value: "", text: cancel }) : null, go)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
    (dialog.querySelector("input, textarea") || go).focus();
  });
}

export function confirmed(title, text, options) {
  return ask(title, el("p", { text }), options);
}

export async function askForToken() {
  const input = el("input", { type: "password", class: "wide", autocomplete: "off", "aria-label": "Token", required: true });
  for (;;) {
    const body = [el("p", { text: "This server requires a token. It is kept until this tab is closed." }), input];
    await ask("Token", body, { action: "Sign in", cancel: "" });
    if (input.value.trim()) return input.value.trim();
  }
}

export function notify(text, kind = "good") {
  const notice = el("p", { class: `toast ${kind}`, text: sentence(text) });
  byId("toasts").append(notice);
  setTimeout(() => notice.remove(), NOTICE_MS);
}

export function notifyOf(error) {
  notify(error.hint ? `${error.message}: ${error.hint}` : error.message, "bad");
}

// A dialog that shows one thing; the caller fills `content`.
export function sheet(title, ...content) {
  const dialog = el("dialog", { class: "sheet", "aria-label": title },
    el("form", { method: "dialog", class: "card-head" }, el("h2", { text: title }),
      el("button", { class: "icon-button", "aria-label": "Close" }, cross())),
    el("div", { class: "sheet-body" }, ...content));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

function cross() {
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  icon.setAttribute("viewBox", "0 0 24 24");
  icon.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M6 6l12 12M18 6 6 18");
  icon.append(path);
  return icon;
}
