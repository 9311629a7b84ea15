// Dead letters: how many of each reason so far, how many are open, and the latest of these.

import { el, keyed, setText } from "../dom.js";
import { clock, count, readable } from "../format.js";

const SHOWN = 40;

export class Letters {
  constructor(query) {
    this.body = el("tbody", { id: "letters" });
    this.chips = el("div", { class: "chips", id: "reasons", role: "group", "aria-label": "Show one reason" });
    this.empty = el("p", { class: "empty", id: "letters-empty", text: "Waiting for the first batch…" });
    this.open = el("small", { id: "letters-open" });
    const heads = ["Reason", "Time", "Step", "What went wrong", "Record"].map((text) => el("th", { scope: "col", text }));
    this.region = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Latest dead letters" },
      el("table", {}, el("thead", {}, el("tr", {}, ...heads)), this.body), this.empty);
    this.element = el("section", { class: "card letters", "aria-labelledby": "letters-title" },
      el("div", { class: "card-head" },
        el("h2", { id: "letters-title" }, el("a", { class: "plain", href: `#/dead-letters?query=${encodeURIComponent(query)}`, text: "Dead letters" }), " ", this.open), this.chips),
      this.region);
    this.reason = "";
    this.letters = [];
    this.reading = false;
    // Rows that move while they are being read are no use to anybody.
    for (const on of ["pointerenter", "focusin"]) this.region.addEventListener(on, () => (this.reading = true));
    for (const off of ["pointerleave", "focusout"]) this.region.addEventListener(off, () => (this.reading = false));
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
