// Values as people read them.

import { el, link } from "./dom.js";

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const dayOnly = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const numbers = new Intl.NumberFormat();
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

export const number = (value) => numbers.format(value ?? 0);

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = Number(value);
  let unit = 0;
  while (Math.abs(size) >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

const isTime = (ms) => Number.isFinite(ms) && Math.abs(ms) <= 8.64e15;

// A time in ms since 1970.
export function time(ms) {
  if (!isTime(ms)) return "–";
  const date = new Date(ms);
  return el("time", { datetime: date.toISOString(), title: date.toISOString() }, moment.format(date));
}

export function ago(ms) {
  if (!isTime(ms)) return "–";
  const date = new Date(ms);
  const seconds = (ms - Date.now()) / 1000;
  const steps = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600],
    [86400 * 60, "day", 86400], [86400 * 730, "month", 86400 * 30.44], [Infinity, "year", 86400 * 365.25]];
  const [, unit, size] = steps.find(([limit]) => Math.abs(seconds) < limit);
  return el("time", { datetime: date.toISOString(), title: moment.format(date) },
    relative.format(Math.round(seconds / size), unit));
}

export const day = (days) => dayOnly.format(new Date(days * 86400000));

// The beginning of a text, never half a character.
function cut(text, limit) {
  if (text.length <= limit) return text;
  const code = text.charCodeAt(limit - 2);
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? limit - 2 : limit - 1) + "…";
}

// A field in a few words, for a cell.
export function brief(field, limit = 60) {
  const value = field?.value;
  if (value === "") return el("span", { class: "faint" }, "empty");
  if (isBytes(field)) return bytes(byteCount(value));
  return cut(plain(field), limit);
}

const isBytes = (field) => /^(ENCRYPTED_)?BYTES$/.test(field?.type ?? "") && typeof field.value === "string";

// Of base64.
const byteCount = (text) => Math.floor((text.replace(/=+$/, "").length * 3) / 4);

function plain(field) {
  const value = field?.value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return `[${value.map(item).join(", ")}]`;
  if (field.type === "TIMESTAMP" && isTime(Number(value))) return moment.format(new Date(Number(value)));
  if (typeof value === "object") {
    if ("recordName" in value) return String(value.recordName);
    if ("size" in value) return `asset, ${bytes(value.size)}`;
    if ("latitude" in value) return `${value.latitude}, ${value.longitude}`;
    return JSON.stringify(value);
  }
  return String(value);
}

// Of a list: texts in quotes, or an empty one and a comma could not be told from two items.
const item = (value) => (typeof value === "string" ? JSON.stringify(value) : plain({ value }));

const longText = 400;

// A field's whole value. `path` leads to the records of the zone that a reference means.
export function whole(field, path) {
  const value = field?.value;
  if (value && field.type === "REFERENCE" && typeof value === "object") {
    return el("span", {}, link([...path, "record", String(value.recordName)], String(value.recordName)));
  }
  if (value && field.type === "ASSETID") return asset(value);
  const text = plain(field);
  if (text === "") return el("span", { class: "faint" }, value === "" ? "empty text" : "empty");
  if (isBytes(field)) return folded(bytes(byteCount(text)), text);
  if (text.length <= longText) return el("span", { class: "value" }, text);
  return folded([cut(text, 80), " ", el("span", { class: "faint" }, `${number([...text].length)} characters`)], text);
}

const folded = (summary, text) =>
  el("details", {}, el("summary", {}, summary), el("span", { class: "value" }, text));

function asset(value) {
  const size = `asset, ${bytes(value.size)}`;
  // Only what this server gives out itself, whatever a record says.
  const match = /\/(asset\/[A-Za-z0-9_-]+)$/.exec(String(value.downloadURL ?? ""));
  if (!match) return size;
  const node = el("a", { rel: "noreferrer" }, `${size}: download`);
  node.href = match[1];
  return node;
}

// Times at which fields were last edited, by name: cairn_clocks is {"1700000000000":["title","body"]}.
export function clocks(fields) {
  const found = new Map();
  let parsed;
  try { parsed = JSON.parse(fields.cairn_clocks?.value ?? "{}"); } catch { return found; }
  if (parsed === null || typeof parsed !== "object") return found;
  for (const [clock, names] of Object.entries(parsed)) {
    if (!Array.isArray(names)) continue;
    if (!isTime(Number(clock))) continue;
    for (const name of names) found.set(String(name), Number(clock));
  }
  return found;
}

export const isOwn = (name) => name.startsWith("cairn_");
