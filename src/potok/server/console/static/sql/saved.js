// Statements that the user has kept in this browser.

import { ask, confirmed, notify } from "../dialogs.js";
import { el } from "../dom.js";

const KEY = "potok.statements";

export class Saved {
  constructor(editor) {
    this.editor = editor;
    this.list = el("select", { "aria-label": "Saved statements", change: () => this.open() });
    this.remove = el("button", { type: "button", class: "button small", text: "Delete", hidden: true, click: () => this.forget() });
    this.element = el("div", { class: "saved" }, this.list, el("button", { type: "button", class: "button small", text: "Save", click: () => this.save() }), this.remove);
    this.draw("");
  }

  all() {
    try { return JSON.parse(localStorage.getItem(KEY)) || {}; } catch { return {}; }
  }

  keep(all) {
    try {
      localStorage.setItem(KEY, JSON.stringify(all));
    } catch {
      notify("this browser keeps nothing", "bad");
    }
  }

  draw(chosen) {
    const names = Object.keys(this.all()).sort();
    this.list.replaceChildren(el("option", { value: "", text: names.length ? "Saved statements" : "Nothing saved yet" }), ...names.map((name) => el("option", { value: name, text: name, selected: name === chosen })));
    this.remove.hidden = !chosen;
  }

  open() {
    const text = this.all()[this.list.value];
    this.remove.hidden = !this.list.value;
    if (text !== undefined) this.editor.set(text);
  }

  async save() {
    const name = el("input", { class: "wide", value: this.list.value, autocomplete: "off", "aria-label": "Name" });
    if (!(await ask("Save the statements", [name], { action: "Save" })) || !name.value.trim()) return;
    this.keep({ ...this.all(), [name.value.trim()]: this.editor.text.value });
    this.draw(name.value.trim());
  }

  async forget() {
    const name = this.list.value;
    if (!(await confirmed("Delete?", `The saved statements “${name}” are deleted.`, { action: "Delete", danger: true }))) return;
    const all = this.all();
    delete all[name];
    this.keep(all);
    this.draw("");
  }
}
