// Usage over time, as a plot and as a table.

import * as api from "./api.js";
import { append, el, svg, table } from "./dom.js";
import { bytes, day } from "./values.js";

const height = 260;
const margin = { top: 18, right: 16, bottom: 34, left: 64 };

export async function usageView(view) {
  const account = await api.overview();
  const days = account.days;
  view.title("Usage");
  append(view.main, [el("p", { class: "lead" },
    account.quota === undefined ? `${bytes(account.bytes)} now, no quota.` : `${bytes(account.bytes)} of ${bytes(account.quota)} now.`)]);
  if (days.length === 0) return append(view.main, [el("p", {}, "Nothing has been noted yet.")]);
  const box = el("div", { class: "plot" });
  append(view.main, [el("figure", {}, box,
    el("figcaption", { class: "faint" }, "What your records take, on days when a device or this page was here (UTC)."))]);
  const draw = () => box.replaceChildren(plot(days, account.quota, Math.max(280, box.clientWidth)));
  draw();
  const observer = new ResizeObserver(draw);
  observer.observe(box);
  view.whenLeft(() => observer.disconnect());
  const rows = [...days].reverse().map((entry) => [day(entry.day), bytes(entry.bytes)]);
  append(view.main, [el("details", {}, el("summary", {}, "As a table"), table("Usage by day", ["Day", "Size"], rows, { numbers: [1] }).box)]);
}

// The least step of 1, 2 or 5 times a power of ten that needs no more than four lines.
function step(most) {
  const rough = Math.max(most, 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
}

function plot(days, quota, width) {
  const most = Math.max(...days.map((entry) => entry.bytes), 1);
  // A quota far away would press the line flat: then it is said in words only.
  const showsQuota = quota !== undefined && quota <= most * 3;
  const size = step(showsQuota ? Math.max(most, quota) : most);
  const top = Math.ceil((showsQuota ? Math.max(most, quota) : most) / size) * size;
  const [from, to] = [days[0].day, days[days.length - 1].day];
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const x = (at) => margin.left + (to === from ? inner.width / 2 : ((at - from) / (to - from)) * inner.width);
  const y = (value) => margin.top + inner.height * (1 - value / top);

  const label = `Usage from ${day(from)} to ${day(to)}: first ${bytes(days[0].bytes)}, last ${bytes(days[days.length - 1].bytes)}, most ${bytes(most)}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  for (let value = 0; value <= top + size / 2; value += size) {
    append(picture, [
      svg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick", x: margin.left - 8, y: y(value) + 4, "text-anchor": "end" }, bytes(value)),
    ]);
  }
  append(picture, dates(from, to, x, inner.width));
  const points = days.map((entry) => `${x(entry.day)},${y(entry.bytes)}`);
  append(picture, [
    svg("polygon", { class: "area", points: [`${x(from)},${y(0)}`, ...points, `${x(to)},${y(0)}`].join(" ") }),
    svg("polyline", { class: "line", points: points.join(" ") }),
    ...days.map((entry) => svg("circle", { class: "dot", cx: x(entry.day), cy: y(entry.bytes), r: days.length > 60 ? 1.5 : 3.5 },
      svg("title", {}, `${day(entry.day)}: ${bytes(entry.bytes)}`))),
  ]);
  if (showsQuota) {
    append(picture, [
      svg("line", { class: "quota", x1: margin.left, x2: width - margin.right, y1: y(quota), y2: y(quota) }),
      svg("text", { class: "tick", x: width - margin.right, y: y(quota) - 6, "text-anchor": "end" }, `quota ${bytes(quota)}`),
    ]);
  }
  return picture;
}

function dates(from, to, x, width) {
  if (from === to) return [svg("text", { class: "tick", x: x(from), y: height - 10, "text-anchor": "middle" }, day(from))];
  const count = Math.max(1, Math.min(Math.floor(width / 180), to - from));
  const texts = [];
  for (let i = 0; i <= count; i += 1) {
    const at = Math.round(from + ((to - from) * i) / count);
    const anchor = i === 0 ? "start" : i === count ? "end" : "middle";
    texts.push(svg("text", { class: "tick", x: x(at), y: height - 10, "text-anchor": anchor }, day(at)));
  }
  return texts;
}
