// What the user has: databases with their zones.

import * as api from "./api.js";
import { append, el, link, replace, table } from "./dom.js";
import { ago, bytes, number } from "./values.js";

export const zonePath = (database, zone) =>
  ["zone", database.container, database.environment, database.database, zone];

export async function overviewView(view) {
  const account = await api.overview();
  view.title("Zones");
  append(view.main, [el("p", { class: "lead" }, usage(account))]);
  if (account.databases.length === 0) {
    append(view.main, [el("p", {}, "Nothing is stored yet. The first sync of a device makes a database.")]);
  }
  const counts = [];
  for (const database of account.databases) {
    append(view.main, [el("h2", {}, database.container, " ", el("small", {}, describe(database)))]);
    if (database.zones.length === 0) append(view.main, [el("p", { class: "faint" }, "No zones.")]);
    const rows = database.zones.map((zone) => {
      const count = el("span", { "aria-label": "being counted" }, "…");
      counts.push([database, zone.name, count]);
      return [link(zonePath(database, zone.name), zone.name), count, bytes(zone.bytes),
        zone.newestChange === undefined ? "–" : ago(zone.newestChange)];
    });
    append(view.main, [
      table(`Zones of ${database.container}`, ["Zone", "Records", "Size", "Newest change"], rows, { numbers: [1, 2] }).box,
    ]);
  }
  // Counting looks at every record: the page is there before.
  for (const [database, zone, node] of counts) {
    if (!view.isShown()) return;
    const { types } = await api.types(database, zone);
    node.removeAttribute("aria-label");
    replace(node, number(types.reduce((sum, type) => sum + type.live, 0)));
  }
}

function usage(account) {
  const used = bytes(account.bytes);
  if (account.quota === undefined) return `${used} in use, no quota.`;
  const share = account.quota > 0 ? Math.round((account.bytes / account.quota) * 100) : 100;
  return `${used} of ${bytes(account.quota)} in use, ${share} %.`;
}

export const describe = (database) => `${database.environment}, ${database.database}`;
