// Rows as a chart: bars over the first text column, or lines over the first time or number.

import { el, svg } from "../dom.js";
import { compact, plain, when } from "../format.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [900, 320, 64, 46, 14];
const MOST_BARS = 40;
const MOST_POINTS = 2_000;
const MOST_LINES = 6;

export function chart(columns, rows, isNumber) {
  const numbers = columns.map((column, at) => ({ ...column, at })).filter((column) => isNumber(column));
  const time = numbers.find((column) => /time|window|_at$|date/i.test(column.name)) || columns.map((column, at) => ({ ...column, at })).find((column) => /^(TIMESTAMP|DATE)/i.test(column.type));
  const label = columns.map((column, at) => ({ ...column, at })).find((column) => !isNumber(column));
  const values = numbers.filter((column) => column !== time && !/^WINDOW(START|END)$/.test(column.name)).slice(0, MOST_LINES);
  if (!rows.length || !values.length) return el("p", { class: "empty", text: "There is nothing to draw." });
  const drawn = time ? lines(rows.slice(-MOST_POINTS), time, values) : bars(rows.slice(0, MOST_BARS), label, values[0]);
  const legend = el("ul", { class: "legend parts" }, ...(time ? values : values.slice(0, 1)).map((column, tone) => el("li", { class: `tone-${tone}`, text: column.name })));
  const cut = !time && rows.length > MOST_BARS ? el("p", { class: "soft", text: `The first ${MOST_BARS} rows.` }) : null;
  return el("div", { class: "sql-chart" }, drawn, legend, cut);
}

function frame(top, low, title) {
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (top - low));
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (top - low || 1));
  const grid = svg("g", { class: "grid", "aria-hidden": "true" }, ...ticks.flatMap((tick) => [
    svg("line", { x1: LEFT, x2: WIDTH, y1: y(tick).toFixed(1), y2: y(tick).toFixed(1) }),
    svg("text", { x: LEFT - 8, y: (y(tick) + 4).toFixed(1), "text-anchor": "end", text: compact(tick) })]));
  return { y, drawing: svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title }, grid) };
}

function bars(rows, label, value) {
  const amounts = rows.map((row) => Number(row[value.at]) || 0);
  const { y, drawing } = frame(Math.max(0, ...amounts) || 1, Math.min(0, ...amounts), `${value.name} by ${label?.name || "row"}`);
  const slot = (WIDTH - LEFT) / rows.length;
  const every = Math.ceil(rows.length / 12);
  rows.forEach((row, at) => {
    const [x, from, to] = [LEFT + at * slot, y(0), y(amounts[at])];
    const text = label ? plain(row[label.at]) : String(at + 1);
    drawing.append(svg("g", { class: "window tone-0" },
      svg("rect", { x: (x + slot * 0.12).toFixed(1), width: (slot * 0.76).toFixed(1), y: Math.min(from, to).toFixed(1), height: Math.max(1, Math.abs(from - to)).toFixed(1), rx: 2 }),
      svg("title", { text: `${text}: ${amounts[at].toLocaleString("en")}` })));
    if (at % every === 0) drawing.append(svg("g", { class: "times" }, svg("text", { x: (x + slot / 2).toFixed(1), y: HEIGHT - BOTTOM + 20, text: text.length > 12 ? `${text.slice(0, 11)}…` : text })));
  });
  return drawing;
}

function lines(rows, time, values) {
  const instant = (row) => (typeof row[time.at] === "number" ? row[time.at] : Date.parse(`${row[time.at]}Z`));
  const sorted = [...rows].filter((row) => !Number.isNaN(instant(row))).sort((a, b) => instant(a) - instant(b));
  const amounts = sorted.flatMap((row) => values.map((column) => Number(row[column.at]) || 0));
  const { y, drawing } = frame(Math.max(0, ...amounts) || 1, Math.min(0, ...amounts), `${values.map((column) => column.name).join(", ")} over ${time.name}`);
  const [first, last] = [instant(sorted[0]), instant(sorted.at(-1))];
  const x = (row) => LEFT + ((instant(row) - first) / (last - first || 1)) * (WIDTH - LEFT - 10);
  values.forEach((column, tone) => {
    const path = sorted.map((row, at) => `${at ? "L" : "M"}${x(row).toFixed(1)} ${y(Number(row[column.at]) || 0).toFixed(1)}`).join("");
    drawing.append(svg("path", { class: `chart-line tone-${tone}`, d: path }));
  });
  const isTime = first > 1e11;
  for (const [row, anchor] of [[sorted[0], "start"], [sorted.at(-1), "end"]]) {
    drawing.append(svg("text", { class: "axis", x: x(row).toFixed(1), y: HEIGHT - BOTTOM + 20, "text-anchor": anchor, text: isTime ? when(instant(row)).slice(0, 19) : compact(instant(row)) }));
  }
  return drawing;
}
