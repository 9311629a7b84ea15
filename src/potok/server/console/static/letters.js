// Dead letters: how many of each reason so far, how many are open, and the latest of these.

import { byId, el, keyed, setText } from "./dom.js";
import { clock, count, readable } from "./format.js";

const SHOWN = 40;

export class Letters {
  constructor() {
    this.body = byId("letters");
    this.chips = byId("reasons");
    this.empty = byId("letters-empty");
    this.open = byId("letters-open");
    this.reason = "";
    this.letters = [];
    this.reading = false;
    // Rows that move while they are being read are no use to anybody.
    const region = this.body.closest(".scroll");
    for (const on of ["pointerenter", "focusin"]) region.addEventListener(on, () => (this.reading = true));
    for (const off of ["pointerleave", "focusout"]) region.addEventListener(off, () => (this.reading = false));
  }

  update(snapshot) {
    const reasons = Object.entries(snapshot.dead_letters_by_reason || {}).filter(([, n]) => n).sort((a, b) => b[1] - a[1]);
    keyed(this.chips, reasons, ([reason]) => reason, ([reason]) => this.chip(reason), (node, [reason, n]) => {
      setText(node.lastChild, count(n));
      node.setAttribute("aria-pressed", String(this.reason === reason));
    });
    if (!this.reading) this.letters = snapshot.recent_dead_letters || [];
    if (snapshot.batch !== undefined) {
      const settled = "None open: all were replayed or purged.";
      setText(this.empty, snapshot.dead_letters ? settled : "None so far: every record was understood and in time.");
      setText(this.open, snapshot.dead_letters ? `${count(snapshot.open_dead_letters)} open` : "");
    }
    this.draw();
  }

  chip(reason) {
    const choose = () => {
      this.reason = this.reason === reason ? "" : reason;
      for (const node of this.chips.children) node.setAttribute("aria-pressed", String(node.dataset.reason === this.reason));
      this.draw();
    };
    return el("button", { type: "button", class: "chip", "data-reason": reason, "aria-pressed": "false", click: choose },
      el("span", { text: reason }), el("b"));
  }

  draw() {
    const shown = this.letters.filter((letter) => !this.reason || letter.reason === this.reason).slice(0, SHOWN);
    this.empty.hidden = shown.length > 0;
    const key = (letter) => `${letter.topic}/${letter.partition}/${letter.offset}/${letter.step}`;
    keyed(this.body, unique(shown, key), key, (letter) => this.row(letter), () => {});
  }

  row(letter) {
    const again = letter.replays ? `, replayed ${count(letter.replays)}×` : "";
    const place = letter.topic ? `${letter.topic}[${letter.partition}] @ ${count(letter.offset)}${again}` : "";
    return el("tr", {},
      el("td", {}, el("span", { class: "chip small", "data-reason": letter.reason, text: letter.reason })),
      el("td", { class: "when", text: clock(letter.at) }),
      el("td", { class: "step-name", text: letter.step, title: letter.step }),
      el("td", { class: "error", text: readable(letter.error), title: letter.error }),
      el("td", { class: "record" }, el("code", { text: letter.value || "(null)", title: letter.value }), el("small", { text: place })));
  }
}

function unique(items, keyOf) {
  return [...new Map(items.map((item) => [keyOf(item), item])).values()];
}
