// What a view shows when there is nothing to show, when something is wrong, and while it waits.

import { el } from "./dom.js";

export function empty(title, text = "", ...actions) {
  return el("div", { class: "nothing" }, el("h2", { text: title }), text ? el("p", { text }) : null,
    actions.length ? el("p", { class: "actions" }, ...actions) : null);
}

export function failure(error, retry) {
  const offline = error instanceof TypeError; // what fetch raises without a connection
  return el("div", { class: "banner wrong", role: "alert" },
    el("strong", { text: offline ? "The server does not answer." : sentence(error.message) }),
    error.hint ? el("p", { text: sentence(error.hint) }) : null,
    retry ? el("p", {}, el("button", { type: "button", class: "button", text: "Try again", click: retry })) : null);
}

export function loading(text = "Loading…") {
  return el("p", { class: "empty", text });
}

// Messages of the server begin in lower case and end without a dot.
export function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.?!:…]$/.test(first) ? first : `${first}.`;
}
