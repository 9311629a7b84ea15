// Statements of a text: each ends with a semicolon outside of quotes and comments.

export function statements(text) {
  const found = [];
  let start = 0;
  for (const { kind, end } of tokens(text)) {
    if (kind !== "end") continue;
    found.push({ text: text.slice(start, end), at: start });
    start = end;
  }
  const rest = text.slice(start);
  if (hasWords(rest)) found.push({ text: `${rest};`, at: start });
  return found.filter((each) => hasWords(each.text));
}

function hasWords(text) {
  return [...tokens(text)].some(({ kind }) => kind === "other" || kind === "quoted");
}

export function* tokens(text) {
  const pattern = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?)|(;)|([^\s;'"`/-]+|[-/])|\s+/g;
  for (const match of text.matchAll(pattern)) {
    const [whole, comment, quoted, end, other] = match;
    const kind = comment ? "comment" : quoted ? "quoted" : end ? "end" : other ? "other" : "space";
    yield { kind, at: match.index, end: match.index + whole.length, text: whole };
  }
}

// Whether a statement streams until it is stopped.
export function isPush(text) {
  const words = [...tokens(text)].filter(({ kind }) => kind === "other" || kind === "quoted").map((token) => token.text.toUpperCase());
  if (words[0] === "PRINT") return true;
  return words[0] === "SELECT" && words.some((word, at) => word === "EMIT" && words[at + 1] === "CHANGES");
}
