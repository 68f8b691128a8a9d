// What the user has: databases with their zones.

import * as api from "./api.js";
import { append, el, link, replace, table } from "./dom.js";
import { ago, bytes, number } from "./values.js";
import { countTypes, zoneName, zonePath } from "./scope.js";

// Above that many zones a field narrows them down.
const many = 15;

export async function overviewView(view) {
  const account = await api.overview();
  view.title("Zones");
  append(view.main, [el("p", { class: "lead" }, usage(account))]);
  if (account.databases.length === 0) {
    append(view.main, [el("p", {}, "Nothing is stored yet. The first sync of a device makes a database.")]);
  }
  const counts = [];
  const tables = [];
  const total = account.databases.reduce((sum, database) => sum + database.zones.length, 0);
  if (total > many) append(view.main, [zoneFilter(tables)]);
  for (const database of account.databases) {
    const heading = el("h2", {}, database.container, " ", el("small", {}, describe(database)));
    append(view.main, [heading]);
    if (database.zones.length === 0) append(view.main, [el("p", { class: "faint" }, "No zones.")]);
    const rows = database.zones.map((zone) => {
      const count = el("span", { "aria-label": "being counted" }, "…");
      counts.push([database, zone.name, count]);
      // What is shared counts for its owner.
      return [link(zonePath(database, zone.name), zoneName(database, zone.name)), count,
        database.database === "shared" ? "–" : bytes(zone.bytes),
        zone.newestChange === undefined ? "–" : ago(zone.newestChange)];
    });
    const { box, rows: made } = table(`Zones of ${database.container}`, ["Zone", "Records", "Size", "Newest change"], rows,
      { numbers: [1, 2] });
    tables.push({ parts: [heading, box], rows: made });
    append(view.main, [box]);
  }
  // Counting looks at every record: the page is there before.
  for (const [database, zone, node] of counts) {
    if (!view.isShown()) return;
    const { types, isWhole } = await countTypes(database, zone);
    node.removeAttribute("aria-label");
    replace(node, number(types.reduce((sum, type) => sum + type.live, 0)) + (isWhole ? "" : "+"));
  }
}

// Hides the zones whose names lack what is typed.
function zoneFilter(tables) {
  const field = el("input", { type: "search", id: "zone-filter", autocomplete: "off",
    autocapitalize: "none", spellcheck: "false" });
  const note = el("span", { class: "faint", role: "status" });
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    let found = 0;
    for (const { parts, rows } of tables) {
      const before = found;
      for (const row of rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        if (!row.hidden) found += 1;
      }
      for (const part of parts) part.hidden = found === before;
    }
    replace(note, wanted === "" ? "" : found === 0 ? "No zone is called so." : found === 1 ? "1 zone" : `${number(found)} zones`);
  });
  const form = el("form", { class: "inline", role: "search" }, el("label", { for: "zone-filter" }, "Find a zone"), field, note);
  form.addEventListener("submit", (event) => event.preventDefault());
  return form;
}

function usage(account) {
  const used = bytes(account.bytes);
  if (account.quota === undefined) return `${used} in use, no quota.`;
  const share = account.quota > 0 ? Math.round((account.bytes / account.quota) * 100) : 100;
  return `${used} of ${bytes(account.quota)} in use, ${share} %.`;
}

export const describe = (database) => `${database.environment}, ${database.database}`;
