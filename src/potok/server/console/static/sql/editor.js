// A text field with completion, and a mark at the position of an error.

import { get } from "../api.js";
import { el } from "../dom.js";
import { execute } from "./run.js";
import { KEYWORDS } from "./keywords.js";
import { tokens } from "./split.js";

const SHOWN = 9;
const KEY = "potok.sql";

export class Editor {
  constructor(onRun) {
    this.onRun = onRun;
    this.words = KEYWORDS.map((text) => ({ text, kind: "keyword" }));
    this.text = el("textarea", { id: "sql", class: "wide", rows: 9, spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": "Statements", placeholder: "SELECT * FROM totals WHERE user_id = 'user_001';",
      role: "combobox", "aria-expanded": "false", "aria-controls": "sql-words", "aria-autocomplete": "list",
      keydown: (event) => this.key(event), input: () => this.typed(), blur: () => this.hide(), scroll: () => this.align() });
    this.under = el("pre", { class: "marks", "aria-hidden": "true" });
    this.list = el("ul", { class: "completions", id: "sql-words", role: "listbox", hidden: true });
    this.element = el("div", { class: "editor" }, this.under, this.text, this.list);
    try { this.text.value = sessionStorage.getItem(KEY) || ""; } catch { /* private windows keep nothing */ }
  }

  set(text) {
    this.text.value = text;
    this.unmark();
    this.keep();
    this.text.focus();
  }

  keep() {
    try { sessionStorage.setItem(KEY, this.text.value); } catch { /* private windows keep nothing */ }
  }

  // The selected statements, or all of them, and where they begin.
  chosen() {
    const { value, selectionStart: start, selectionEnd: end } = this.text;
    return end > start && value.slice(start, end).trim() ? { text: value.slice(start, end), start } : { text: value, start: 0 };
  }

  async load(signal) {
    const add = (items) => (this.words = [...items, ...this.words]);
    try {
      const [{ streams }, { tables }] = await Promise.all([get("/streams", { signal }), get("/tables", { signal })]);
      add([...streams.map((one) => ({ ...one, kind: "stream" })), ...tables.map((one) => ({ ...one, kind: "table" }))].flatMap((one) =>
        [{ text: one.name, kind: one.kind }, ...one.columns.map((text) => ({ text, kind: `column of ${one.name}` }))]));
      const [functions] = await execute("SHOW FUNCTIONS;", {}, signal);
      add(functions.rows.map(([text]) => ({ text: String(text).toUpperCase(), kind: "function" })));
      const seen = new Set();
      this.words = this.words.filter(({ text }) => !seen.has(text) && seen.add(text));
    } catch { /* without the names of the server, keywords are completed */ }
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      this.hide();
      return this.onRun();
    }
    if (event.ctrlKey && event.key === " ") {
      event.preventDefault();
      return this.suggest(true);
    }
    if (this.list.hidden) return;
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) {
      event.preventDefault();
      this.choose((this.at + moves[event.key] + this.found.length) % this.found.length);
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      this.take(this.found[this.at]);
    } else if (event.key === "Escape") this.hide();
  }

  typed() {
    this.unmark();
    this.keep();
    this.suggest(false);
  }

  suggest(always) {
    const before = this.text.value.slice(0, this.text.selectionStart);
    const last = [...tokens(before)].at(-1);
    this.word = /[\w$]*$/.exec(before)[0];
    if (last?.kind === "comment" || last?.kind === "quoted" || (!always && this.word.length < 2)) return this.hide();
    const wanted = this.word.toUpperCase();
    this.found = this.words.filter(({ text }) => text.toUpperCase().startsWith(wanted) && text.toUpperCase() !== wanted).slice(0, SHOWN);
    if (!this.found.length) return this.hide();
    this.list.replaceChildren(...this.found.map((one, at) => el("li", { role: "option", id: `word-${at}`, pointerdown: (event) => { event.preventDefault(); this.take(one); } }, el("span", { text: one.text }), el("small", { text: one.kind }))));
    this.list.hidden = false;
    this.text.setAttribute("aria-expanded", "true");
    this.place(before);
    this.choose(0);
  }

  // Below the word, as far as the width of a letter says.
  place(before) {
    const style = getComputedStyle(this.text);
    const lines = before.split("\n");
    const [row, column] = [lines.length, lines.at(-1).length - this.word.length];
    const height = parseFloat(style.lineHeight);
    const width = letterWidth(style.font);
    this.list.style.top = `${Math.min(row * height + 12 - this.text.scrollTop, this.text.clientHeight)}px`;
    this.list.style.left = `${Math.max(8, Math.min(column * width + 12 - this.text.scrollLeft, this.text.clientWidth - 250))}px`;
  }

  choose(at) {
    this.at = at;
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === at)));
    this.text.setAttribute("aria-activedescendant", `word-${at}`);
  }

  take(one) {
    const end = this.text.selectionStart;
    this.text.setRangeText(one.text, end - this.word.length, end, "end");
    this.hide();
    this.keep();
  }

  hide() {
    this.list.hidden = true;
    this.text.setAttribute("aria-expanded", "false");
    this.text.removeAttribute("aria-activedescendant");
  }

  // Underlines the part that an error names; its line and column count from the start of what was sent.
  mark(offset, { line, column, length = 1 }) {
    const rest = this.text.value.slice(offset).split("\n");
    const start = offset + rest.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
    const end = Math.max(start + 1, start + length);
    this.under.replaceChildren(this.text.value.slice(0, start), el("mark", { text: this.text.value.slice(start, end) || " " }), this.text.value.slice(end));
    this.text.focus();
    this.text.setSelectionRange(start, start);
    this.align();
  }

  unmark() {
    this.under.replaceChildren();
  }

  align() {
    this.under.style.transform = `translate(${-this.text.scrollLeft}px, ${-this.text.scrollTop}px)`;
  }
}

function letterWidth(font) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  return pen.measureText("0").width;
}
