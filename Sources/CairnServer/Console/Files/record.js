// A record with its fields, and what the server knows of how it came about.

import * as api from "./api.js";
import { append, el, link, table } from "./dom.js";
import { ago, clocks, isOwn, time, whole } from "./values.js";
import { zoneID, zoneName, zonePath } from "./scope.js";

export async function recordView(view, database, zone, name) {
  const path = zonePath(database, zone);
  const answer = await api.post(database, "records/lookup", {
    zoneID: zoneID(database, zone), records: [{ recordName: name }],
  });
  const record = answer.records[0];
  const above = [link([""], "Zones"), link(path, zoneName(database, zone))];
  if (record.serverErrorCode) {
    view.title(name, above);
    const isGone = record.serverErrorCode === "NOT_FOUND";
    return append(view.main, [el("p", {}, isGone ? "There is no such record; it may have been deleted." : record.reason)]);
  }
  view.title(name, [...above, link([...path, "type", record.recordType], record.recordType)]);
  const edited = clocks(record.fields);
  append(view.main, [facts(record, path), el("h2", {}, "Fields"), fieldTable(record, path, edited, false)]);
  const own = Object.keys(record.fields).filter(isOwn);
  if (own.length > 0) {
    append(view.main, [
      el("details", {}, el("summary", {}, "What Cairn keeps along"), fieldTable(record, path, edited, true)),
    ]);
  }
  if (record.participants) append(view.main, [el("h2", {}, "Participants"), participants(record)]);
  append(view.main, [el("h2", {}, "History"), history(record, edited)]);
}

// Who takes part in a share.
function participants(record) {
  const who = (participant) => {
    const identity = participant.userIdentity ?? {};
    const names = identity.nameComponents ?? {};
    const name = [names.givenName, names.familyName].filter(Boolean).join(" ");
    return name || identity.lookupInfo?.emailAddress || identity.userRecordName || identity.lookupInfo?.userRecordName || "–";
  };
  const rows = record.participants.map((participant) =>
    [who(participant), participant.type ?? "–", participant.permission ?? "–", participant.acceptanceStatus ?? "–"]);
  return table("Participants of the share", ["Who", "Role", "Permission", "Status"], rows, { plain: [1, 2, 3] }).box;
}

function facts(record, path) {
  const list = el("dl", { class: "facts" });
  const add = (name, ...value) => append(list, [el("div", {}, el("dt", {}, name), el("dd", {}, ...value))]);
  add("Type", record.recordType);
  add("Created", time(record.created?.timestamp));
  add("Modified", time(record.modified?.timestamp));
  if (record.parent) add("Parent", link([...path, "record", record.parent.recordName], record.parent.recordName));
  if (record.share) add("Share", link([...path, "record", record.share.recordName], record.share.recordName));
  if (record.shortGUID) add("Short GUID", el("code", {}, record.shortGUID));
  if (record.publicPermission) add("Public permission", record.publicPermission);
  add("Change tag", el("code", {}, record.recordChangeTag));
  return list;
}

function fieldTable(record, path, edited, own) {
  const names = Object.keys(record.fields).filter((name) => isOwn(name) === own).sort();
  if (names.length === 0) return el("p", { class: "faint" }, "No fields.");
  // Rows of Cairn know it, records of other apps don't.
  const isDated = !own && names.some((name) => edited.has(name));
  const rows = names.map((name) => {
    const field = record.fields[name];
    const row = [name, whole(field, path), field.type ?? "–"];
    return isDated ? [...row, edited.has(name) ? time(edited.get(name)) : "–"] : row;
  });
  return table(own ? "Fields that Cairn keeps along" : "Fields",
    isDated ? ["Field", "Value", "Type", "Last edited"] : ["Field", "Value", "Type"], rows, { wide: 1, plain: [2] }).box;
}

// Newest first. Earlier values are not kept anywhere.
function history(record, edited) {
  const events = new Map();
  for (const [name, clock] of edited) events.set(clock, [...(events.get(clock) ?? []), name]);
  const by = (stamp) => {
    const name = stamp?.userRecordName;
    return name ? ` by ${name === api.me ? "you" : name}` : "";
  };
  const entries = [...events].map(([clock, names]) => [clock, `Edited: ${names.sort().join(", ")}`]);
  entries.push([record.created?.timestamp ?? 0, `Created on the server${by(record.created)}`]);
  if (record.modified?.timestamp !== record.created?.timestamp) {
    entries.push([record.modified?.timestamp ?? 0, `Last stored${by(record.modified)}`]);
  }
  entries.sort((a, b) => b[0] - a[0]);
  return el("div", {},
    el("p", { class: "faint" }, edited.size > 0
      ? "For each field the time of its last edit. Earlier values are not kept." : "Earlier values are not kept."),
    el("ol", { class: "history" }, ...entries.map(([at, text]) =>
      el("li", {}, el("span", { class: "when" }, time(at), " · ", ago(at)), el("span", {}, text)))));
}
