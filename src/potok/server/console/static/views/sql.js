// An editor for statements, with results as a table or a chart, and push queries as they arrive.

import { el, setText } from "../dom.js";
import { confirmed } from "../dialogs.js";
import { count } from "../format.js";
import { Editor } from "../sql/editor.js";
import { Result } from "../sql/result.js";
import { Saved } from "../sql/saved.js";
import { isPush, statements } from "../sql/split.js";
import { execute, push } from "../sql/run.js";
import { empty, failure, sentence } from "../states.js";

const GOES_FOR_GOOD = /^\s*(drop|terminate)\b/i;
const KEPT_ROWS = 10_000;

export async function open(root, { params, signal }) {
  const editor = new Editor(() => run());
  const saved = new Saved(editor);
  const go = el("button", { type: "button", class: "button primary", text: "Run", click: () => run() });
  const stop = el("button", { type: "button", class: "button", text: "Stop", hidden: true, click: () => running?.abort() });
  const status = el("p", { class: "soft grow", role: "status" });
  const beginning = el("input", { type: "checkbox" });
  const results = el("div", { class: "results" }, empty("Results appear here", "Ctrl+Enter runs all statements, or those that are selected. Ctrl+Space completes."));
  root.append(el("div", { class: "view-head" }, el("h1", { text: "SQL" }), saved.element),
    el("section", { class: "card editor-card" }, editor.element,
      el("div", { class: "toolbar editor-bar" }, status, el("label", { class: "check", title: "auto.offset.reset = earliest, for push queries" }, beginning, "from the beginning"), stop, go)),
    results);
  let running = null;
  if (params.get("q")) editor.set(params.get("q"));
  signal.addEventListener("abort", () => running?.abort(), { once: true });
  editor.load(signal);

  async function run() {
    running?.abort();
    const text = editor.chosen();
    const all = statements(text.text);
    if (!all.length) return setText(status, "There is no statement.");
    const dropping = all.find((each) => GOES_FOR_GOOD.test(each.text));
    if (dropping && !(await confirmed("Run this?", dropping.text.trim(), { action: "Run", danger: true }))) return;
    editor.unmark();
    const mine = (running = new AbortController());
    busy(true);
    results.replaceChildren();
    const began = performance.now();
    try {
      await runAll(all, text.start, mine.signal);
      setText(status, mine.signal.aborted ? "Stopped." : `Done in ${Math.round(performance.now() - began)} ms.`);
    } catch (error) {
      if (mine.signal.aborted) setText(status, "Stopped.");
      else {
        setText(status, "");
        results.append(problem(error));
      }
    } finally {
      if (running === mine) busy(false);
    }
  }

  // Finite statements go together; each push query streams until it is stopped.
  async function runAll(all, offset, stopped) {
    const properties = beginning.checked ? { "auto.offset.reset": "earliest" } : {};
    let waiting = [];
    const flush = async () => {
      if (!waiting.length) return;
      const some = waiting;
      waiting = [];
      try {
        (await execute(some.map((each) => each.text).join(""), properties, stopped)).forEach(show);
      } catch (error) {
        (error.body?.results || []).forEach(show);
        if (error.body?.line) editor.mark(offset + some[0].at, error.body);
        throw error;
      }
    };
    for (const each of all) {
      if (!isPush(each.text)) {
        waiting.push(each);
        continue;
      }
      await flush();
      await follow(each, properties, stopped);
    }
    await flush();
  }

  async function follow(statement, properties, stopped) {
    const result = new Result(statement.text, { live: true });
    results.append(result.element);
    setText(status, "Waiting for rows…");
    await push(statement.text, properties, stopped, {
      onColumns: (columns) => result.columns(columns),
      onRows: (rows) => {
        result.add(rows, KEPT_ROWS);
        setText(status, `${count(result.received)} rows so far.`);
      },
    });
  }

  function show(found) {
    const result = new Result(found.statement);
    result.fill(found);
    results.append(result.element);
  }

  function busy(is) {
    stop.hidden = !is;
    go.hidden = is;
    if (is) setText(status, "Running…");
  }
}

// The marked line alone: message and hint are shown beside it.
function lineOf(marked) {
  const lines = marked.split("\n").slice(1).filter((line) => !/^\s*hint:/.test(line));
  return lines.join("\n") || marked;
}

function problem(error) {
  if (error.body?.marked) {
    return el("div", { class: "banner wrong", role: "alert" }, el("strong", { text: sentence(error.message) }),
      el("pre", { text: lineOf(error.body.marked) }), error.hint ? el("p", { text: sentence(error.hint) }) : null);
  }
  return failure(error);
}

