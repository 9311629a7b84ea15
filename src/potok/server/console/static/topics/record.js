// One record in full: position, times, headers, key and value, decoded and as bytes.

import { get, path } from "../api.js";
import { copyButton } from "../clicks.js";
import { sheet } from "../dialogs.js";
import { el } from "../dom.js";
import { count, pretty, when } from "../format.js";
import { failure, loading } from "../states.js";

export async function showRecord(topic, { partition, offset }) {
  const body = el("div", { class: "sheet-body" }, loading());
  const dialog = sheet(`${topic} ${partition}:${offset}`, body);
  try {
    const after = `${partition}:${offset}`;
    const { records } = await get(path("topics", topic, "records"), { params: { after, partition, limit: 1, whole: true } });
    const record = records.find((each) => each.offset === offset);
    if (record) body.replaceChildren(...parts(record));
    else body.replaceChildren(el("p", { class: "empty", text: "The record is no longer in the topic." }));
  } catch (error) {
    body.replaceChildren(failure(error));
  }
  return dialog;
}

export function parts(record) {
  const facts = { Partition: count(record.partition), Offset: count(record.offset), Time: `${when(record.timestamp)} (${record.timestamp})`, Appended: when(record.ingested) };
  return [
    el("dl", { class: "fact-list" }, ...Object.entries(facts).flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { text })])),
    part("Key", record.key, record.key_bytes, record.key_base64),
    part("Value", record.value, record.value_bytes, record.value_base64),
    record.headers.length
      ? el("div", {}, el("h3", { text: "Headers" }), el("dl", { class: "fact-list" }, ...record.headers.flatMap(([name, text]) => [el("dt", { text: name }), el("dd", { class: "mono", text: text ?? "null" })])))
      : el("p", { class: "soft", text: "No headers." }),
  ];
}

function part(title, text, size, base64) {
  const shown = el("pre", { tabindex: 0, text: pretty(text) });
  const bytes = base64 === undefined ? null : el("button", { type: "button", class: "button small", "aria-pressed": "false", text: "Bytes", click: (event) => {
    const pressed = event.target.getAttribute("aria-pressed") !== "true";
    event.target.setAttribute("aria-pressed", String(pressed));
    shown.textContent = pressed ? hex(base64) : pretty(text);
  } });
  return el("div", {}, el("div", { class: "card-head" }, el("h3", { text: `${title}, ${count(size)} bytes` }), text === null ? null : copyButton(text), bytes), shown);
}

// Sixteen bytes on a line: position, hexadecimal, text.
export function hex(base64) {
  const data = atob(base64);
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const some = [...data.slice(at, at + 16)];
    const numbers = some.map((c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join(" ").padEnd(47);
    lines.push(`${at.toString(16).padStart(6, "0")}  ${numbers}  ${some.map((c) => (/[\x20-\x7e]/.test(c) ? c : "·")).join("")}`);
  }
  return lines.join("\n") || "(empty)";
}
