// Which zone of which database: addresses of views, and what the protocol wants.

import * as api from "./api.js";

// The server names a zone that others have shared OWNER/ZONE; names of users hold no slash.
function parts(database, zone) {
  if (database.database !== "shared") return { name: zone };
  const at = zone.indexOf("/");
  return at < 0 ? { name: zone } : { owner: zone.slice(0, at), name: zone.slice(at + 1) };
}

// What the server's overview calls a zone.
export const called = (database, { zoneName: name, ownerRecordName: owner }) =>
  database.database === "shared" ? `${owner}/${name}` : name;

export const zoneName = (database, zone) => parts(database, zone).name;

// Whose zone it is; undefined for one's own.
export const zoneOwner = (database, zone) => parts(database, zone).owner;

export const zonePath = (database, zone) =>
  ["zone", database.container, database.environment, database.database, zone];

export function zoneID(database, zone) {
  const { owner, name } = parts(database, zone);
  return owner === undefined ? { zoneName: name } : { zoneName: name, ownerRecordName: owner };
}

const pages = 10;

// The types of a zone with their numbers of records. What is shared is counted by its feed, up to some pages.
export async function countTypes(database, zone) {
  if (database.database !== "shared") return { types: (await api.types(database, zone)).types, isWhole: true };
  const counts = new Map();
  let token;
  for (let page = 0; page < pages; page += 1) {
    const answer = await api.changes(database,
      { zoneID: zoneID(database, zone), desiredKeys: [], ...(token ? { syncToken: token } : {}) }, ["page=2000"]);
    for (const record of answer.records) {
      if (!record.deleted) counts.set(record.recordType, (counts.get(record.recordType) ?? 0) + 1);
    }
    token = answer.syncToken;
    if (!answer.moreComing) return { types: sorted(counts), isWhole: true };
  }
  return { types: sorted(counts), isWhole: false };
}

const sorted = (counts) => [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, live]) => ({ name, live }));
