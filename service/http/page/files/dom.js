/** Elements. What is put into them becomes text, never markup. */

/** Returns an element with these properties; children are nodes or texts, and nothing of null. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (name in node && name !== "list" && name !== "role") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Returns the element with this id. */
export const byId = (id) => document.getElementById(id);

/** Returns a table with these headings; each cell is a node or a text. */
export function table(caption, headings, rows) {
  const cells = (tag, values) => values.map((value) => element(tag, tag === "th" ? { scope: "col" } : {}, value));
  return element(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", { className: "sr" }, caption),
      element("thead", {}, element("tr", {}, ...cells("th", headings))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells("td", row)))),
    ),
  );
}

/** Returns a button that calls `act`. */
export const button = (text, act, properties = {}) => element("button", { type: "button", on: { click: act }, ...properties }, text);
