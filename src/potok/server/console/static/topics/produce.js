// Append one record to a topic.

import { path, post } from "../api.js";
import { ask, notify, notifyOf } from "../dialogs.js";
import { el } from "../dom.js";

export async function produce(name, topic) {
  const key = el("input", { class: "wide", autocomplete: "off", spellcheck: "false" });
  const value = el("textarea", { class: "wide", rows: 8, spellcheck: "false" });
  const headers = el("textarea", { class: "wide", rows: 2, spellcheck: "false", placeholder: "name: value, one per line" });
  const empty = el("input", { type: "checkbox", change: () => (value.disabled = empty.checked) });
  const partition = el("select", { class: "wide" }, el("option", { value: "", text: "by the key" }),
    ...(topic?.partition_offsets || []).map((part) => el("option", { value: part.partition, text: String(part.partition) })));
  const body = [field("Key", key), field("Value", value), el("label", { class: "check" }, empty, "no value: delete the key"), field("Headers", headers), field("Partition", partition)];
  if (!(await ask(`Produce to ${name}`, body, { action: "Append the record" }))) return;
  const record = { value: empty.checked ? null : value.value };
  if (key.value) record.key = key.value;
  if (partition.value !== "") record.partition = Number(partition.value);
  const given = headers.value.split("\n").map((line) => line.split(/:(.*)/s)).filter(([header]) => header.trim());
  if (given.length) record.headers = Object.fromEntries(given.map(([header, text = ""]) => [header.trim(), text.trim()]));
  try {
    const { position } = await post(path("topics", name, "records"), record);
    notify(`one record was appended${position ? ` at ${position}` : ""}`);
  } catch (error) {
    notifyOf(error);
  }
}

function field(title, input) {
  return el("label", { class: "field" }, title, input);
}
