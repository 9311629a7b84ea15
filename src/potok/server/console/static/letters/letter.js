// One dead letter: position, error with its stack trace, bytes, headers.

import { needs } from "../caller.js";
import { copyButton } from "../clicks.js";
import { sheet } from "../dialogs.js";
import { el } from "../dom.js";
import { count, pretty, when } from "../format.js";
import { hex } from "../topics/record.js";

const ALTERED = {
  seen: "as the step saw them: the record was no longer in the log",
  cut: "truncated: the dead letter would have been too large for the log",
};

export function showLetter(letter, replay) {
  const again = el("button", { type: "button", class: "button primary", text: "Replay this record", click: async () => {
    dialog.close();
    await replay(letter);
  } });
  needs("write", again).catch(() => {});
  const facts = {
    Query: letter.query, Step: letter.step, Reason: letter.reason, "Set aside": when(letter.set_aside_at_ms),
    Record: letter.topic ? `${letter.topic} ${letter.partition}:${letter.offset}` : "made inside the query", Time: `${when(letter.timestamp)} (${letter.timestamp})`,
    Replayed: letter.replays ? `${count(letter.replays)} times` : "never", Bytes: letter.altered ? ALTERED[letter.altered] || letter.altered : "",
  };
  const headers = Object.entries(letter.headers || {});
  const dialog = sheet(`Dead letter ${letter.position}`,
    el("dl", { class: "fact-list" }, ...Object.entries(facts).filter(([, text]) => text).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })])),
    el("div", {}, el("div", { class: "card-head" }, el("h3", { text: "Error" }), copyButton(letter.error)), el("pre", { tabindex: 0, text: letter.error })),
    part("Key", letter.key), part("Value", letter.value),
    headers.length ? el("div", {}, el("h3", { text: "Headers" }), el("dl", { class: "fact-list" }, ...headers.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { class: "mono", text: textOf(value) })]))) : null,
    el("p", { class: "actions" },
      letter.topic ? el("a", { class: "button", href: `#/topics/${encodeURIComponent(letter.topic)}?at=${letter.partition}:${letter.offset}`, text: "Open in the topic", click: () => dialog.close() }) : null,
      letter.topic ? again : null));
}

// Bytes that are not text come as base64.
function part(title, value) {
  const bytes = value !== null && typeof value === "object" ? value.base64 : btoa(String.fromCharCode(...new TextEncoder().encode(value ?? "").slice(0, 20_000)));
  const isText = typeof value === "string" || value === null;
  const shown = el("pre", { tabindex: 0, text: isText ? pretty(value) : hex(bytes) });
  const toggle = isText && value ? el("button", { type: "button", class: "button small", "aria-pressed": "false", text: "Bytes", click: (event) => {
    const pressed = event.target.getAttribute("aria-pressed") !== "true";
    event.target.setAttribute("aria-pressed", String(pressed));
    shown.textContent = pressed ? hex(bytes) : pretty(value);
  } }) : null;
  return el("div", {}, el("div", { class: "card-head" }, el("h3", { text: title }), isText && value ? copyButton(value) : null, toggle), shown);
}

function textOf(value) {
  return value === null ? "null" : typeof value === "object" ? `base64 ${value.base64}` : value;
}
