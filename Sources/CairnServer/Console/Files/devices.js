// The user's devices and when each was here last.

import * as api from "./api.js";
import { append, el, table } from "./dom.js";
import { ago, time } from "./values.js";

export async function devicesView(view) {
  const { devices } = await api.overview();
  view.title("Devices");
  append(view.main, [
    el("p", { class: "faint" }, "Devices that say their name, as cairn does. Times are up to a minute late."),
  ]);
  if (devices.length === 0) return append(view.main, [el("p", {}, "No device has been here yet.")]);
  const rows = devices.map((device) =>
    [device.name, ago(device.lastSeen), device.container, time(device.lastSeen), time(device.firstSeen)]);
  append(view.main, [table("Devices", ["Device", "Last sync", "Container", "At", "First seen"], rows).box]);
}
