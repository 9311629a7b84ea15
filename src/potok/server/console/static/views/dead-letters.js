// Dead letters by query, step and reason: look at them, replay or purge them.

import { get, path, post } from "../api.js";
import { needs } from "../caller.js";
import { confirmed, notify, notifyOf } from "../dialogs.js";
import { el, setText } from "../dom.js";
import { count, plain, readable, when } from "../format.js";
import { Grid } from "../grid.js";
import { empty, failure, loading } from "../states.js";
import { showLetter } from "../letters/letter.js";

const REFRESH_MS = 4_000;
const LIMIT = 2_000;

export async function open(root, { params, signal }) {
  const wanted = { query: params.get("query") || "", reason: params.get("reason") || "", step: params.get("step") || "" };
  const groups = new Grid({ label: "Groups of dead letters", rowHeight: 50, columns: GROUPS, onOpen: choose, height: "360px" });
  const number = el("small");
  const body = el("div", {}, loading());
  const list = el("div", { class: "below-card" });
  root.append(el("div", { class: "view-head" }, el("h1", {}, "Dead letters", number)), el("section", { class: "card flush" }, body), list);
  let shown = null;

  function choose(group) {
    const target = new URLSearchParams({ query: group.query, step: group.step, reason: group.reason });
    history.replaceState(null, "", `#/dead-letters?${target}`);
    show(group);
  }

  function show(group) {
    shown?.close();
    shown = new Letters(group, signal, refresh);
    list.replaceChildren(shown.element);
    shown.refresh();
  }

  async function refresh() {
    try {
      const found = await get("/dead-letters", { signal });
      const open = found.queries.reduce((sum, each) => sum + each.open, 0);
      setText(number, open ? `${count(open)} open, in ${count(found.queries.length)} ${found.queries.length === 1 ? "query" : "queries"}` : "");
      groups.show(found.groups);
      if (!found.groups.length) body.replaceChildren(empty("No open dead letters", "Every record was understood and in time, or was replayed."));
      else if (body.firstChild !== groups.element) body.replaceChildren(groups.element);
      return found.groups;
    } catch (error) {
      if (!signal.aborted) body.replaceChildren(failure(error, refresh));
      return [];
    }
  }

  const found = await refresh();
  const fits = (group) => group.query === wanted.query && (!wanted.reason || group.reason === wanted.reason) && (!wanted.step || group.step === wanted.step);
  const first = wanted.query ? found.find(fits) || { query: wanted.query } : null;
  if (first && !signal.aborted) show(first);
  const timer = setInterval(refresh, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

class Letters {
  constructor(group, signal, changed) {
    Object.assign(this, { group, signal, changed, letters: [] });
    const button = (text, click, kind = "") => el("button", { type: "button", class: `button small ${kind}`, text, click });
    this.replaySome = button("Replay the selected", () => this.act("replay", this.positions()));
    this.replayAll = button("Replay all of these", () => this.act("replay"), "primary");
    this.purgeSome = button("Purge the selected", () => this.act("purge", this.positions()), "danger");
    needs("write", this.replaySome, this.replayAll, this.purgeSome).catch(() => {});
    this.grid = new Grid({
      label: "Dead letters", columns: LETTERS, rowHeight: 50, selectable: true, keyOf: (letter) => letter.position,
      onOpen: (letter) => showLetter(letter, (one) => this.act("replay", [one.position])),
      onSelect: () => this.mark(),
    });
    this.title = el("h2", { text: title(group) });
    this.body = el("div", {}, loading());
    this.element = el("section", { class: "card flush" },
      el("div", { class: "card-head" }, this.title, this.replaySome, this.purgeSome, this.replayAll), this.body);
    this.mark();
  }

  close() {
    this.closed = true;
  }

  criteria() {
    const { step, reason, topic } = this.group;
    return { step, reason, topic: topic || undefined };
  }

  positions() {
    return [...this.grid.chosen];
  }

  mark() {
    const none = !this.grid.chosen.size;
    this.replaySome.hidden = none;
    this.purgeSome.hidden = none;
    setText(this.replaySome, `Replay ${count(this.grid.chosen.size)} selected`);
    setText(this.purgeSome, `Purge ${count(this.grid.chosen.size)} selected`);
  }

  async refresh() {
    try {
      const found = await get(path("queries", this.group.query, "dead-letters"), { signal: this.signal, params: { ...this.criteria(), limit: LIMIT } });
      if (this.closed) return;
      this.letters = found.dead_letters.reverse();
      this.replayAll.hidden = !this.letters.length;
      if (!this.letters.length) this.body.replaceChildren(empty("None open here", "All were replayed or purged."));
      else if (this.body.firstChild !== this.grid.element) this.body.replaceChildren(this.grid.element);
      this.grid.show(this.letters);
    } catch (error) {
      if (!this.signal.aborted) this.body.replaceChildren(failure(error));
    }
  }

  async act(action, positions = null) {
    const target = path("queries", this.group.query, "dead-letters", action);
    const selection = positions ? { positions } : this.criteria();
    try {
      const planned = await post(target, { ...selection, dry_run: true });
      const what = action === "replay"
        ? `${count(planned.records)} ${planned.records === 1 ? "record is" : "records are"} appended to ${planned.partitions.length ? [...new Set(planned.partitions.map((part) => part.topic))].join(", ") : "no topic"} again; other readers of the topic get them again, too.${left(planned)}`
        : `${count(planned.dead_letters)} dead ${planned.dead_letters === 1 ? "letter is" : "letters are"} removed for good.`;
      if (!(await confirmed(action === "replay" ? "Replay?" : "Purge?", what, { action: action === "replay" ? "Replay" : "Purge", danger: action === "purge" }))) return;
      const done = await post(target, selection);
      notify(action === "replay" ? `${count(done.records)} records were appended, ${count(done.dead_letters)} dead letters are resolved${left(done)}` : `${count(done.dead_letters)} dead letters were purged`);
      this.grid.chosen.clear();
      this.mark();
      await Promise.all([this.refresh(), this.changed()]);
    } catch (error) {
      notifyOf(error);
    }
  }
}

function left({ left: reasons = {} }) {
  const parts = Object.entries(reasons).map(([why, n]) => `${count(n)} cannot be replayed: ${why}`);
  return parts.length ? ` ${parts.join("; ")}.` : "";
}

function title(group) {
  return [group.query, group.step, group.reason].filter(Boolean).join(" · ");
}

const GROUPS = [
  { title: "Query and step", width: "minmax(130px, 1.4fr)", min: 130, sort: (group) => group.query, cell: (group) => el("div", { class: "two" }, el("b", { text: group.query }), el("small", { text: group.step })) },
  { title: "Reason", width: "100px", min: 90, sort: (group) => group.reason, cell: (group) => el("span", { class: "chip small", "data-reason": group.reason, text: group.reason }) },
  { title: "Open", width: "70px", min: 60, number: true, sort: (group) => group.count, cell: (group) => count(group.count) },
  { title: "Latest", width: "180px", min: 180, wide: true, sort: (group) => group.latest_at_ms, cell: (group) => when(group.latest_at_ms) },
  { title: "What went wrong", width: "minmax(160px, 3fr)", min: 160, wide: true, cell: (group) => readable(group.error) },
];

const LETTERS = [
  { title: "Record", width: "minmax(120px, 1.2fr)", min: 120, sort: (letter) => letter.offset, cell: (letter) => el("div", { class: "two" }, el("b", { text: letter.topic || "made in the query" }), el("small", { text: letter.topic ? `${letter.partition}:${letter.offset}` : letter.position })) },
  { title: "Set aside", width: "180px", min: 180, wide: true, sort: (letter) => letter.set_aside_at_ms, cell: (letter) => when(letter.set_aside_at_ms) },
  { title: "What went wrong", width: "minmax(150px, 2.4fr)", min: 150, cell: (letter) => readable(letter.error.split("\n")[0]) },
  { title: "Value", width: "minmax(150px, 2.4fr)", min: 150, mono: true, wide: true, cell: (letter) => plain(letter.value) },
];
