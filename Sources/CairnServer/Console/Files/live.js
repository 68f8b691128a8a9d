// Changes as they come: a subscription and a long poll, or a look every few seconds where that fails. Stops while the
// page can't be seen.

import * as api from "./api.js";
import { append, el, link, replace } from "./dom.js";
import { clocks, isOwn, time } from "./values.js";
import { kind, name } from "./changes.js";
import { called, zoneID, zoneName, zonePath } from "./scope.js";

const features = ["tombstone-type", "tombstone-time", "page=2000"];
// All who listen to a database share this subscription with cairn sync --watch.
const subscription = "cairn-changes";
const lookInterval = 10000;
const mostEntries = 500;

export async function liveView(view) {
  const account = await api.overview();
  const databases = account.databases.filter((database) => database.database !== "public");
  view.title("Live");
  const status = el("p", { class: "state", role: "status" }, "Starting…");
  const list = el("ol", { class: "live", role: "log", "aria-label": "Changes, newest first" });
  const none = el("p", { class: "faint" }, "No change since this page was opened.");
  append(view.main, [status, none, list]);
  if (databases.length === 0) return replace(status, "There is no database to follow yet.");

  const show = (database, zone, record) => {
    none.hidden = true;
    list.prepend(entry(database, zone, record));
    while (list.childElementCount > mostEntries) list.lastElementChild.remove();
  };
  const tail = new Tail(databases, show, (text) => replace(status, text));
  const onVisibility = () => (document.hidden ? tail.stop("Paused while the page is hidden.") : tail.start());
  document.addEventListener("visibilitychange", onVisibility);
  view.whenLeft(() => {
    document.removeEventListener("visibilitychange", onVisibility);
    tail.stop("");
  });
  onVisibility();
}

function entry(database, zone, record) {
  const path = zonePath(database, zone);
  const node = el("li", {}, el("span", { class: "when" }, time(Date.now())),
    el("span", { class: `kind ${kind(record)}` }, kind(record)),
    el("span", {}, name(record, path)), el("span", { class: "faint" }, `${record.recordType ?? ""} in `, link(path, zoneName(database, zone))));
  const fields = editedLast(record);
  if (fields.length > 0 && kind(record) === "changed") append(node, [el("span", { class: "faint" }, fields.join(", "))]);
  return node;
}

// The fields of the newest edit, where the record says.
function editedLast(record) {
  if (record.deleted) return [];
  const edited = [...clocks(record.fields ?? {})].filter(([field]) => !isOwn(field));
  const newest = Math.max(...edited.map(([, clock]) => clock));
  return edited.filter(([, clock]) => clock === newest).map(([field]) => field).sort();
}

class Tail {
  constructor(databases, show, tell) {
    this.databases = databases.map((database) => ({ database, tokens: null }));
    this.show = show;
    this.tell = tell;
    this.run = null;
    this.address = null;
  }

  start() {
    if (this.run) return;
    this.run = new AbortController();
    this.follow(this.run.signal);
  }

  stop(text) {
    this.run?.abort();
    this.run = null;
    if (text) this.tell(text);
  }

  async follow(signal) {
    while (!signal.aborted) {
      try {
        this.address ??= await this.subscribe();
        await this.look(signal);
        if (signal.aborted) return;
        this.tell("Waiting for changes.");
        if ((await api.poll(this.address, signal)) === "gone") this.address = null;
      } catch (failure) {
        if (signal.aborted || failure.code === "SIGNED_OUT" || failure.code === "AUTHENTICATION_FAILED") return;
        this.address = null;
        await this.fallBack(signal, failure);
      }
    }
  }

  // Looks again after a while; the wait ends with the run.
  async fallBack(signal, failure) {
    const every = `every ${lookInterval / 1000} seconds`;
    this.tell(failure.code === "NO_ANSWER" ? `No connection to the server. Trying again ${every}.`
      : `Looking ${every} (${failure.message}).`);
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, lookInterval);
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
    if (signal.aborted) return;
    try { await this.look(signal); } catch { /* The next round says what is wrong. */ }
  }

  // One address for all databases.
  async subscribe() {
    let address = null;
    for (const { database } of this.databases) {
      const answer = await api.post(database, "subscriptions/modify", {
        operations: [{ operationType: "create", subscription: { subscriptionID: subscription, subscriptionType: "database" } }],
      });
      const failed = answer.subscriptions?.find((entry) => entry.serverErrorCode && entry.serverErrorCode !== "EXISTS");
      if (failed) throw new api.Failure(failed.serverErrorCode, failed.reason);
      const body = { apnsEnvironment: database.environment };
      if (address === null) address = await api.post(database, "tokens/create", body);
      else await api.post(database, "tokens/register", { ...body, apnsToken: address.apnsToken });
    }
    return address.webcourierURL;
  }

  // Shows what has changed since the last look; the first one only notes where the feeds stand.
  async look(signal) {
    for (const entry of this.databases) {
      const { zones } = await api.post(entry.database, "zones/list", {});
      const known = entry.tokens;
      const now = new Map();
      for (const zone of zones) {
        const name = called(entry.database, zone.zoneID);
        const before = known?.get(name);
        const isNew = known && !known.has(name);
        now.set(name, zone.syncToken);
        if (known && zone.syncToken && (isNew || before !== zone.syncToken)) {
          now.set(name, await this.read(entry.database, name, before, signal));
        }
        if (signal.aborted) return;
      }
      entry.tokens = now;
    }
  }

  async read(database, zone, token, signal) {
    for (let since = token; ;) {
      const page = await api.changes(database, { zoneID: zoneID(database, zone), ...(since ? { syncToken: since } : {}) }, features);
      if (signal.aborted) return since;
      for (const record of page.records) this.show(database, zone, record);
      since = page.syncToken;
      if (!page.moreComing) return since;
    }
  }
}
