// Makes elements. Text enters the page here as text nodes only; nothing is ever parsed as HTML.

const namespace = "http://www.w3.org/2000/svg";

// Attributes that can't make anything run or load.
const allowed = new Set([
  "aria-atomic", "aria-busy", "aria-current", "aria-describedby", "aria-hidden", "aria-label", "aria-labelledby",
  "aria-live", "autocapitalize", "autocomplete", "autofocus", "class", "colspan", "data-label", "datetime", "disabled", "for", "height",
  "hidden", "id", "maxlength", "name", "open", "rel", "required", "role", "scope", "spellcheck", "tabindex", "title",
  "type", "value", "width",
  // Of SVG.
  "cx", "cy", "d", "points", "r", "text-anchor", "viewBox", "x", "x1", "x2", "y", "y1", "y2",
]);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (!allowed.has(name)) throw new Error(`attribute ${name} is not allowed`);
    node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

// Appends nodes, and anything else as text.
export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    if (child instanceof Node) node.append(child);
    else appendText(node, String(child));
  }
}

// Characters that are not seen: controls, and what turns the direction of the text that follows, which could make a page
// say what no record holds.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;

function appendText(node, text) {
  for (let rest = text; ;) {
    const at = rest.search(unseen);
    if (at < 0) return rest === "" ? undefined : node.append(document.createTextNode(rest));
    if (at > 0) node.append(document.createTextNode(rest.slice(0, at)));
    const mark = document.createElement("span");
    mark.className = "unseen-character";
    mark.textContent = `U+${rest.charCodeAt(at).toString(16).toUpperCase().padStart(4, "0")}`;
    node.append(mark);
    rest = rest.slice(at + 1);
  }
}

export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(namespace, name), attributes, children);
}

// A link to a view of this page; the words of the path are encoded.
export function link(path, ...children) {
  const node = el("a", {}, ...children);
  node.href = address(path);
  return node;
}

export function address(path) {
  return "#/" + path.map((word) => encodeURIComponent(word)).join("/");
}

export function button(text, action, attributes = {}) {
  const node = el("button", { type: "button", ...attributes }, text);
  node.addEventListener("click", action);
  return node;
}

// A table that scrolls inside its own box, also by keyboard. Rows are arrays of cells; the first cell names its row.
//
// On a phone each row becomes a block with the row's name above its cells: then the roles say what the elements no
// longer do. `plain` are columns whose cells need no label there; `wide` is the one that takes a line of its own.
export function table(caption, heads, rows, options = {}) {
  const body = el("tbody", { role: "rowgroup" });
  const kind = (i) => (options.numbers?.includes(i) ? "number" : options.wide === i ? "wide" : undefined);
  const add = (row) => {
    const cells = row.map((cell, i) => {
      if (i === 0) return el("th", { scope: "row", role: "rowheader" }, cell);
      const label = options.plain?.includes(i) || options.wide === i ? undefined : heads[i];
      return el("td", { role: "cell", class: kind(i), "data-label": label }, cell);
    });
    body.append(el("tr", { role: "row" }, ...cells));
  };
  rows.forEach(add);
  const head = heads.map((text, i) => el("th", { scope: "col", role: "columnheader", class: kind(i) }, text));
  const box = el("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    el("table", { role: "table" }, el("caption", { class: "unseen" }, caption),
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)), body));
  return { box, add, rows: body.children };
}

export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
}
