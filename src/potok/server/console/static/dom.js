// Small builders of elements. Text is always set as text, never as markup: it may come from anybody's records.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name === "text") node.textContent = value;
    else if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter(Boolean));
  return node;
}

export function byId(id) {
  return document.getElementById(id);
}

// Writing the same text again would still cost a layout, several times a second.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Keeps the children of `parent` in step with `items`: made once per key, updated in place, gone when the key is gone.
export function keyed(parent, items, keyOf, make, update) {
  const known = parent.rowsByKey || (parent.rowsByKey = new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, node] of known) {
    if (!wanted.has(key)) {
      node.remove();
      known.delete(key);
    }
  }
  items.forEach((item, index) => {
    const key = keyOf(item);
    let node = known.get(key);
    if (!node) {
      node = make(item);
      known.set(key, node);
    }
    if (parent.children[index] !== node) parent.insertBefore(node, parent.children[index] || null);
    update(node, item, index);
  });
}
