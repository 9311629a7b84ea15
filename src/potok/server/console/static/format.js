// Numbers and times as a person reads them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const missing = (n) => n === null || n === undefined || Number.isNaN(n);

export const count = (n) => (missing(n) ? "–" : whole.format(n));
export const compact = (n) => (missing(n) ? "–" : Math.abs(n) < 10_000 ? whole.format(n) : short.format(n));
export const rate = (n) => (missing(n) ? "–" : n > 0 && n < 10 ? tenth.format(n) : whole.format(n));
export const money = (n, unit) => (missing(n) ? "–" : unit + (Math.abs(n) < 1000 && !Number.isInteger(n) ? cents : whole).format(n));
export const clock = (ms) => (missing(ms) ? "–" : time.format(new Date(ms)));

// Errors name instants in milliseconds since 1970, which is exact and tells a person nothing.
export const readable = (text) => text.replace(/\b1\d{12}\b/g, (ms) => clock(Number(ms)));

export function percent(part, all) {
  if (!all) return "0 %";
  const share = (100 * part) / all;
  return `${share > 0 && share < 0.01 ? "< 0.01" : share < 10 ? cents.format(share) : tenth.format(share)} %`;
}

export function bytes(n) {
  if (missing(n)) return ["–", ""];
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (n >= 1000 && power < units.length - 1) {
    n /= 1000;
    power += 1;
  }
  return [power && n < 100 ? tenth.format(n) : whole.format(n), units[power]];
}

export function duration(ms) {
  if (missing(ms)) return "–";
  const s = Math.floor(ms / 1000);
  const two = (n) => String(n).padStart(2, "0");
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)} h`;
  return `${Math.floor(s / 86_400)} d ${Math.floor(s / 3600) % 24} h`;
}

export function batchTime(ms) {
  if (missing(ms)) return ["–", ""];
  return ms < 10_000 ? [whole.format(ms), "ms"] : [tenth.format(ms / 1000), "s"];
}

// A lag: short, and never negative.
export function lagTime(ms) {
  if (missing(ms)) return "–";
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${tenth.format(ms / 1000)} s`;
  return duration(ms);
}

const stamp = new Intl.DateTimeFormat("en-GB", { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });

// Date and time in the zone of the reader, in the order that sorts.
export function when(ms) {
  if (missing(ms)) return "–";
  if (Math.abs(ms) > 8.64e15) return String(ms);
  const part = Object.fromEntries(stamp.formatToParts(new Date(ms)).map(({ type, value }) => [type, value]));
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second}.${part.fractionalSecond}`;
}

export const size = (n) => (missing(n) ? "–" : bytes(n).join(" "));

// A value of a record or a row on one line.
export function plain(value) {
  if (value === null || value === undefined) return "null";
  return typeof value === "string" ? value : JSON.stringify(value);
}

// The same over several lines; JSON text is indented.
export function pretty(value) {
  if (value === null || value === undefined) return "null";
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  if (!/^[[{]/.test(value)) return value;
  try { return JSON.stringify(JSON.parse(value), null, 2); } catch { return value; }
}
