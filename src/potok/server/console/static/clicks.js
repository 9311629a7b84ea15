// Tabs, copied text and downloads.

import { el } from "./dom.js";
import { notify } from "./dialogs.js";

// Tabs: {name, title, open(root, signal)}; the first one, or the one named, is open.
export function tabs(label, all, chosen, onChoose = () => {}) {
  const panel = el("div", { role: "tabpanel", tabindex: -1 });
  let opened = new AbortController();
  const buttons = all.map((each) => el("button", { type: "button", role: "tab", id: `tab-${each.name}`, text: each.title, click: () => show(each) }));
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": label, keydown: (event) => step(event) }, ...buttons);

  function show(each) {
    opened.abort();
    opened = new AbortController();
    buttons.forEach((button, at) => {
      const current = all[at] === each;
      button.setAttribute("aria-selected", String(current));
      button.tabIndex = current ? 0 : -1;
    });
    panel.replaceChildren();
    panel.setAttribute("aria-labelledby", `tab-${each.name}`);
    onChoose(each.name);
    each.open(panel, opened.signal);
  }

  function step(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const at = buttons.indexOf(document.activeElement);
    const next = (at + move + buttons.length) % buttons.length;
    buttons[next].focus();
    show(all[next]);
  }

  show(all.find((each) => each.name === chosen) || all[0]);
  return { element: el("div", {}, list, panel), close: () => opened.abort() };
}

export function copyButton(text) {
  return el("button", { type: "button", class: "button small", text: "Copy", click: async () => {
    try {
      await navigator.clipboard.writeText(text);
      notify("copied");
    } catch {
      notify("the browser does not allow copying here", "bad");
    }
  } });
}

export function download(name, text, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  document.body.append(link);
  link.click();
  setTimeout(() => { URL.revokeObjectURL(link.href); link.remove(); });
}

// A value in a file of comma-separated values; one that a spreadsheet would take for a formula begins with a quote.
export function csv(rows) {
  const field = (value) => {
    const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}
