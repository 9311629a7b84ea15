// Calls the HTTP API of the server, the same that scripts use: /openapi.json describes it.

const BASE = new URL("..", document.baseURI);
const SILENCE_MS = 12_000; // a server that is there sends something every five seconds
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 5_000;
const KEY = "potok.token";

let token = read();
let askForToken = null;
let asking = null;

function read() {
  try { return sessionStorage.getItem(KEY) || ""; } catch { return ""; }
}

export function onUnauthorized(ask) {
  askForToken = ask;
}

// What the server answers to a request that it refuses, with what is wrong and what to do instead.
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || `the server answered ${status}`);
    this.status = status;
    this.hint = body.hint || "";
    this.body = body;
  }
}

export function url(path) {
  return new URL(path.replace(/^\//, ""), BASE);
}

export function path(...parts) {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

export const get = (target, options = {}) => request("GET", target, undefined, options);
export const post = (target, body, options = {}) => request("POST", target, body, options);
export const remove = (target, options = {}) => request("DELETE", target, undefined, options);

async function request(method, target, body, { signal, params } = {}) {
  const answer = await send(method, withParams(target, params), body, signal);
  return answer.status === 204 ? null : answer.json();
}

export function withParams(target, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${target}?${new URLSearchParams(given)}` : target;
}

export async function send(method, target, body, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(url(target), { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.status === 401 && askForToken) {
    await newToken();
    return send(method, target, body, signal);
  }
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

// Several requests are refused at once; the user is asked once.
async function newToken() {
  asking ||= askForToken().finally(() => (asking = null));
  token = await asking;
  try { sessionStorage.setItem(KEY, token); } catch { /* private windows keep nothing */ }
}

// Server-sent events over fetch, because EventSource sends no token. Reconnects with growing pauses.
export function follow(target, { onData, onLost = () => {}, onBack = () => {}, onError = () => {}, signal }) {
  let tries = 0;
  let lost = false;

  async function run() {
    while (!signal.aborted) {
      try {
        await listen();
        tries += 1;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Problem && error.status < 500) return onError(error);
        tries += 1;
      }
      if (signal.aborted) return;
      lost = true;
      onLost(tries);
      await pause(Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** (tries - 1)), signal);
    }
  }

  async function listen() {
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener("abort", stop, { once: true });
    let watchdog = setTimeout(stop, SILENCE_MS);
    try {
      const answer = await send("GET", target, undefined, attempt.signal);
      await readEvents(answer.body.getReader(), (kind, data) => {
        if (kind === "error") throw new Problem(data.status || 500, data);
        tries = 0;
        if (lost) {
          lost = false;
          onBack();
        }
        onData(data, kind);
      }, () => {
        clearTimeout(watchdog);
        watchdog = setTimeout(stop, SILENCE_MS);
      });
    } finally {
      clearTimeout(watchdog);
      signal.removeEventListener("abort", stop);
      attempt.abort();
    }
  }

  run();
}

async function readEvents(reader, onEvent, onBytes) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onBytes();
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
      const kind = lines.find((line) => line.startsWith("event: "))?.slice(7) || "";
      if (data.length) onEvent(kind, JSON.parse(data.join("\n")));
    }
  }
}

export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const end = () => { clearTimeout(timer); resolve(); };
    signal.addEventListener("abort", end, { once: true });
    addEventListener("online", end, { once: true });
  });
}
