// What the token of the user allows, and what the server serves.

import { get } from "./api.js";

let known = null;

export function server() {
  known ||= get("/overview").catch((error) => {
    known = null;
    throw error;
  });
  return known;
}

export async function may(scope) {
  const { scopes } = await server();
  return scopes.includes(scope);
}

// A control of an action: without the scope it is disabled and says why.
export async function needs(scope, ...controls) {
  if (await may(scope)) return;
  for (const control of controls) {
    control.disabled = true;
    control.title = `Your token lacks the scope ${scope}.`;
  }
}
