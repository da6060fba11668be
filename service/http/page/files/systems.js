/** A field for a coordinate system: search by name, place or EPSG code. */

import { call } from "./api.js";
import { element } from "./dom.js";
import { texts } from "./texts.js";

const PAUSE_MS = 200;

/** Returns a labeled field; its `value` is the code that was chosen or typed, or nothing. */
export function systemField(id, label, { chosen = null, hint = "" } = {}) {
  const input = element("input", {
    id,
    type: "text",
    autocomplete: "off",
    spellcheck: false,
    placeholder: texts.systemHint,
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": `${id}-list`,
    value: chosen ? shown(chosen) : "",
  });
  const list = element("ul", { id: `${id}-list`, className: "options", role: "listbox", "aria-label": label, hidden: true });
  const status = element("span", { className: "sr", role: "status" });
  let found = [];
  let active = -1;
  let code = chosen?.epsg ?? null;
  let timer = 0;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const pick = (index) => {
    code = found[index].epsg;
    input.value = shown(found[index]);
    close();
  };
  const activate = (index) => {
    active = (index + found.length) % found.length;
    [...list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === active)));
    list.children[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[active].id);
  };
  const search = async () => {
    const text = input.value.trim();
    if (!text) return close();
    found = (await call(`systems?search=${encodeURIComponent(text)}`).catch(() => ({ systems: [] }))).systems;
    if (text !== input.value.trim() || document.activeElement !== input) return undefined;
    list.replaceChildren(
      ...found.map((system, index) =>
        element(
          "li",
          { id: `${id}-${index}`, role: "option", "aria-selected": "false", on: { pointerdown: (event) => (event.preventDefault(), pick(index)) } },
          element("span", { className: "code" }, `${system.epsg}`),
          element("span", {}, system.name),
          element("span", { className: "hint" }, system.area),
        ),
      ),
    );
    list.hidden = !found.length;
    active = -1;
    input.setAttribute("aria-expanded", String(Boolean(found.length)));
    status.textContent = found.length ? texts.systemsFound(found.length) : texts.noSystems;
    return undefined;
  };

  input.addEventListener("input", () => {
    const digits = /^\s*(?:epsg:)?\s*(\d{1,9})\s*$/i.exec(input.value);
    code = digits ? Number(digits[1]) : null;
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) search();
      else activate(event.key === "ArrowDown" ? active + 1 : active < 0 ? -1 : active - 1);
    } else if (event.key === "Enter" && !list.hidden && active >= 0) {
      event.preventDefault();
      pick(active);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
  });
  input.addEventListener("focus", () => input.select());
  input.addEventListener("blur", () => {
    close();
    if (input.value.trim() && code === null && found.length) pick(0);
  });

  const node = element("div", { className: "field" }, element("label", { htmlFor: id }, label, hint ? element("span", { className: "hint" }, ` ${hint}`) : null), element("div", { className: "combo" }, input, list), status);
  return { node, get value() { return input.value.trim() ? String(code ?? input.value.trim()) : ""; } };
}

const shown = (system) => `${system.epsg} · ${system.name}`;
