// Makes elements. Text enters the page here as text nodes only; nothing is ever parsed as HTML.

const namespace = "http://www.w3.org/2000/svg";

// Attributes that can't make anything run or load.
const allowed = new Set([
  "aria-atomic", "aria-busy", "aria-current", "aria-describedby", "aria-hidden", "aria-label", "aria-labelledby",
  "aria-live", "autocapitalize", "autocomplete", "autofocus", "class", "colspan", "datetime", "disabled", "for", "height",
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
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
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
export function table(caption, heads, rows, options = {}) {
  const body = el("tbody");
  const add = (row) => {
    const cells = row.map((cell, i) => {
      const kind = options.numbers?.includes(i) ? "number" : options.wide === i ? "wide" : undefined;
      return i === 0 ? el("th", { scope: "row" }, cell) : el("td", { class: kind }, cell);
    });
    body.append(el("tr", {}, ...cells));
  };
  rows.forEach(add);
  const head = heads.map((text, i) =>
    el("th", { scope: "col", class: options.numbers?.includes(i) ? "number" : undefined }, text));
  const box = el("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, ...head)), body));
  return { box, add };
}

export function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
}
