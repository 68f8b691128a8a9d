// The feed of a zone, newest change first: every record once, at its latest change.

import * as api from "./api.js";
import { append, button, el, link, table } from "./dom.js";
import { time } from "./values.js";
import { zoneID, zoneName, zonePath } from "./scope.js";

export const features = ["tombstone-type", "tombstone-time", "tombstone-all", "page=2000"];
const first = 100;
const most = 2000;

export async function changesView(view, database, zone) {
  const path = zonePath(database, zone);
  const above = [link([""], "Zones"), link(path, zoneName(database, zone))];
  if (database.database === "public") {
    view.title("History of changes", above);
    return append(view.main, [el("p", {}, "The public database has no history of changes.")]);
  }
  const fetch = (limit) => api.changes(database,
    { zoneID: zoneID(database, zone), reverse: true, resultsLimit: limit, desiredKeys: [] }, features);
  let page = await fetch(first);
  view.title("History of changes", above);
  append(view.main, [
    el("p", { class: "faint" }, "Every record once, at its latest change, newest first. Deletions are remembered for a while."),
  ]);
  if (page.records.length === 0) return append(view.main, [el("p", { class: "faint" }, "No changes.")]);
  const row = (record) => [
    name(record, path), el("span", { class: `kind ${kind(record)}` }, kind(record)), record.recordType ?? "–",
    time(record.modified?.timestamp),
  ];
  let limit = first;
  const { box, add } = table(`Changes of ${zoneName(database, zone)}`, ["Record", "Change", "Type", "Time"],
    page.records.map(row), { plain: [1, 2, 3] });
  const more = button("Show more", async () => {
    more.disabled = true;
    await view.attempt(async () => {
      const shown = page.records.length;
      limit = Math.min(limit * 4, most);
      page = await fetch(limit);
      // What came meanwhile would move the rows: they are told apart by their number only.
      page.records.slice(shown).forEach((record) => add(row(record)));
    }, () => more.click());
    more.disabled = false;
    more.hidden = page.records.length < limit || limit === most;
  });
  more.hidden = page.records.length < limit;
  append(view.main, [box, el("div", { class: "below" }, more)]);
}

export function kind(record) {
  if (record.deleted) return "deleted";
  return record.created?.timestamp === record.modified?.timestamp ? "created" : "changed";
}

// A record that is gone can't be opened.
export const name = (record, path) =>
  record.deleted ? record.recordName : link([...path, "record", record.recordName], record.recordName);
