// A zone: its types, and the records of a type.

import * as api from "./api.js";
import { append, button, el, link, replace, table } from "./dom.js";
import { ago, brief, isOwn, number } from "./values.js";
import { describe } from "./overview.js";
import { countTypes, zoneID, zoneName, zoneOwner, zonePath } from "./scope.js";

const pageSize = 50;
const mostColumns = 6;

export async function zoneView(view, database, zone) {
  const { types, isWhole } = await countTypes(database, zone);
  const path = zonePath(database, zone);
  const owner = zoneOwner(database, zone);
  view.title(zoneName(database, zone), [link([""], "Zones")]);
  append(view.main, [
    el("p", { class: "lead" }, `${database.container}, ${describe(database)}`,
      owner === undefined ? null : [", of the user ", el("code", {}, owner)]),
    el("p", {}, link([...path, "changes"], "History of changes")),
    finder(path),
    el("h2", {}, "Record types"),
  ]);
  if (types.length === 0) return append(view.main, [el("p", { class: "faint" }, "The zone is empty.")]);
  const rows = types.map((type) =>
    [link([...path, "type", type.name], type.name), number(type.live) + (isWhole ? "" : "+"),
      type.deleted === undefined ? "–" : number(type.deleted)]);
  append(view.main, [
    table(`Record types of ${zoneName(database, zone)}`, ["Type", "Records", "Deleted"], rows, { numbers: [1, 2] }).box,
  ]);
}

// Opens a record by its name.
function finder(path) {
  const field = el("input", { id: "record-name", name: "record", type: "text", required: true, autocomplete: "off",
    autocapitalize: "none", spellcheck: "false", maxlength: 255 });
  const form = el("form", { class: "inline" }, el("label", { for: "record-name" }, "Record name"), field,
    el("button", { type: "submit" }, "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = link([...path, "record", field.value]).hash;
  });
  return form;
}

export async function typeView(view, database, zone, type) {
  const path = zonePath(database, zone);
  const query = (marker) => api.post(database, "records/query", {
    query: { recordType: type }, zoneID: zoneID(database, zone), resultsLimit: pageSize,
    ...(marker ? { continuationMarker: marker } : {}),
  });
  let page = await query();
  view.title(type, [link([""], "Zones"), link(path, zoneName(database, zone))]);
  if (page.records.length === 0) return append(view.main, [el("p", { class: "faint" }, "No records.")]);

  const columns = columnNames(page.records);
  const row = (record) => [
    link([...path, "record", record.recordName], record.recordName),
    ...columns.map((name) => brief(record.fields[name])), ago(record.modified?.timestamp),
  ];
  const { box, add } = table(`Records of ${type}`, ["Record", ...columns, "Modified"], page.records.map(row));
  let shown = page.records.length;
  const status = el("p", { class: "faint", role: "status" });
  const tell = () =>
    replace(status, page.continuationMarker ? `The first ${number(shown)} records.`
      : shown === 1 ? "1 record." : `${number(shown)} records.`);
  tell();
  const more = button("Show more", async () => {
    more.disabled = true;
    await view.attempt(async () => {
      page = await query(page.continuationMarker);
      page.records.forEach((record) => add(row(record)));
      shown += page.records.length;
      tell();
    }, () => more.click());
    more.disabled = false;
    more.hidden = !page.continuationMarker;
  });
  more.hidden = !page.continuationMarker;
  append(view.main, [box, el("div", { class: "below" }, status, more)]);
}

// Those that most records have first.
function columnNames(records) {
  const counts = new Map();
  for (const record of records) {
    for (const name of Object.keys(record.fields)) if (!isOwn(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, mostColumns).map(([name]) => name);
}
