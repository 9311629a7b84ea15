// Sends statements: finite ones to POST /sql, push queries to POST /query-stream.

import { Problem, post, send } from "../api.js";

export async function execute(sql, properties, signal) {
  return (await post("/sql", { sql, properties }, { signal })).results;
}

// Lines of the answer: a header with the columns, then a row each.
export async function push(sql, properties, signal, { onColumns, onRows }) {
  const answer = await send("POST", "/query-stream", { sql, properties }, signal).catch(readable);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let columns = null;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = lines.pop();
    const rows = [];
    for (const line of lines.filter((each) => each.trim())) {
      const data = JSON.parse(line);
      if (Array.isArray(data)) rows.push(data);
      else if (data.columnNames && !columns) {
        columns = data.columnNames.map((name, at) => ({ name, type: data.columnTypes[at] }));
        onColumns(columns);
      } else if (data.error_code || data.message) throw new Problem(data.error_code || 500, { detail: data.message });
    }
    if (rows.length) onRows(rows);
  }
}

// Errors of this path have the form of ksqlDB.
function readable(error) {
  if (error instanceof Problem && error.body.message) throw new Problem(error.status, { ...error.body, detail: error.body.message });
  throw error;
}
