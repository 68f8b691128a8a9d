// Talks to the server that this page came from. The token stays in this tab's session storage and travels in a header:
// never in an address.

const key = "cairn-token";
let token = sessionStorage.getItem(key);
let last = Promise.resolve();
let whenSignedOut = () => {};

export class Failure extends Error {
  constructor(code, reason, retryAfter) {
    super(reason);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

export const isSignedIn = () => token !== null;

export function onSignedOut(action) { whenSignedOut = action; }

export function setToken(text) {
  token = text;
  if (text === null) sessionStorage.removeItem(key);
  else sessionStorage.setItem(key, text);
}

// Requests go one after the other: a server may end a token with its use and give the next one with the answer.
function call(path, options) {
  const run = last.then(() => send(path, options));
  last = run.catch(() => {});
  return run;
}

async function send(path, options) {
  if (token === null) throw new Failure("SIGNED_OUT", "You are signed out.");
  const used = token;
  let response;
  try {
    response = await fetch(path, {
      ...options, headers: { ...options.headers, Authorization: `Bearer ${used}` }, cache: "no-store",
      credentials: "omit", referrerPolicy: "no-referrer", redirect: "error",
    });
  } catch {
    throw new Failure("NO_ANSWER", "The server can't be reached.");
  }
  const next = response.headers.get("X-Apple-CloudKit-Web-Auth-Token");
  if (next && token === used) setToken(next);
  const answer = await read(response);
  if (response.ok) return answer;
  const failure = new Failure(answer.serverErrorCode ?? "UNKNOWN", answer.reason ?? `HTTP ${response.status}`,
    answer.retryAfter);
  if (failure.code === "AUTHENTICATION_FAILED" && token === used) {
    setToken(null);
    whenSignedOut(failure);
  }
  throw failure;
}

async function read(response) {
  try {
    return await response.json();
  } catch {
    throw new Failure("UNKNOWN", `The server gave an answer that can't be read (HTTP ${response.status}).`);
  }
}

// The record name of who is signed in, once the server has said it.
export let me = null;

export async function overview() {
  const account = await call("console/overview", { method: "GET" });
  me = account.userRecordName;
  return account;
}

export function types(database, zone) {
  const query = new URLSearchParams({ ...scope(database), zone });
  return call(`console/types?${query}`, { method: "GET" });
}

const scope = ({ container, environment, database }) => ({ container, environment, database });

// A call of the protocol (docs/spec/web-services.md).
export function post(database, operation, body, features = []) {
  const words = [database.container, database.environment, database.database].map((word) => encodeURIComponent(word));
  const query = features.length ? `?cairn=${encodeURIComponent(features.join(","))}` : "";
  return call(`database/1/${words.join("/")}/${operation}${query}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
}

// Waits at an address for notifications, which is its own credential: "news", "quiet" or "gone".
export async function poll(url, signal) {
  const name = new URL(url, location.href).pathname.split("/").pop();
  let response;
  try {
    response = await fetch(`courier/${encodeURIComponent(name)}`, {
      signal, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer",
    });
  } catch {
    throw new Failure("NO_ANSWER", "The server can't be reached.");
  }
  if (response.status === 404) return "gone";
  if (!response.ok) throw new Failure("NO_ANSWER", `HTTP ${response.status}`);
  return response.status === 204 ? "quiet" : "news";
}

// One zone's page of a feed; its own error is thrown.
export async function changes(database, query, features) {
  const answer = await post(database, "changes/zone", { zones: [query] }, features);
  const page = answer.zones?.[0] ?? {};
  if (page.serverErrorCode) throw new Failure(page.serverErrorCode, page.reason ?? page.serverErrorCode);
  return page;
}
