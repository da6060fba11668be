/** The page: a key, files, a form, and the cards of the results. */

import { Refused, call, key } from "./api.js";
import { button, byId, element } from "./dom.js";
import { chosen, dropped, uploads } from "./files.js";
import { Card, showHistory } from "./jobs.js";
import { systemField } from "./systems.js";
import { bytes, texts } from "./texts.js";

const WORLD = { epsg: 4326, name: "WGS 84" };
const TEXT_FIELDS = [
  ["layer", texts.onlyIfNeeded],
  ["xField", texts.onlyTables],
  ["yField", texts.onlyTables],
  ["zField", ""],
  ["wktField", texts.onlyTables],
];
const MOST_MAPS = 3;
let files = [];
let systems = {};

for (const node of document.querySelectorAll("[data-text]")) node.textContent = texts[node.dataset.text];

function build() {
  systems = {
    targetEpsg: systemField("targetEpsg", texts.target, { chosen: WORLD }),
    sourceEpsg: systemField("sourceEpsg", texts.source, { hint: texts.sourceHint }),
  };
  byId("target-field").replaceWith(systems.targetEpsg.node);
  byId("options").append(
    systems.sourceEpsg.node,
    ...TEXT_FIELDS.map(([name, hint]) =>
      element("div", { className: "field" }, element("label", { htmlFor: name }, texts[name], hint ? element("span", { className: "hint" }, ` ${hint}`) : null), element("input", { id: name, type: "text", autocomplete: "off", spellcheck: false })),
    ),
    element("div", { className: "field check" }, element("input", { id: "keepCoordinates", type: "checkbox" }), element("label", { htmlFor: "keepCoordinates" }, texts.keepCoordinates)),
  );
}

/** Reads the formats, which needs a key that the server knows; returns whether it does. */
async function enter() {
  if (!key.read()) return show(false);
  try {
    const { formats } = await call("formats");
    byId("format").replaceChildren(
      element("option", { value: "" }, texts.automatic),
      ...formats
        .filter((one) => one.name)
        .map((one) => element("option", { value: one.name, disabled: !one.output }, one.output ? one.title : texts.unavailable(one.title))),
    );
  } catch (error) {
    if (error instanceof Refused && error.status === 401) key.forget();
    byId("key-error").textContent = error.status === 401 ? texts.keyRefused : error.message;
    return show(false);
  }
  byId("key-error").textContent = "";
  show(true);
  return refresh();
}

function show(isIn) {
  const hadFocus = byId("key-form").contains(document.activeElement);
  byId("key-form").hidden = isIn;
  for (const id of ["convert-form", "history-section", "forget"]) byId(id).hidden = !isIn;
  if (!isIn) byId(byId("key").value ? "use-key" : "key").focus();
  else if (hadFocus) byId("choose").focus();
}

const refresh = () => showHistory(byId("history"), open).catch((error) => byId("history").replaceChildren(element("p", { className: "error" }, error.message)));

function card(name) {
  byId("results-section").hidden = false;
  return new Card(byId("results"), name, { told: (text) => (byId("announcer").textContent = text), changed: refresh, closed });
}

function closed() {
  byId("results-section").hidden = !byId("results").childElementCount;
  byId("choose").focus({ preventScroll: true });
}

function open(job) {
  const shown = card(job.originalFileName);
  shown.show(job);
  shown.node.scrollIntoView({ block: "start" });
  shown.title.focus({ preventScroll: true });
}

function add(entries) {
  files = [...files, ...uploads(entries)];
  list();
}

function list() {
  byId("form-message").textContent = files.length ? texts.chosen(files.length) : "";
  byId("chosen").replaceChildren(
    ...files.map((one) =>
      element(
        "li",
        {},
        element("span", { className: "name" }, one.name),
        element("span", { className: "hint" }, one.parts > 1 ? `${bytes(one.size)}, ${texts.zipped(one.parts)}` : bytes(one.size)),
        button("✕", () => {
          files = files.filter((other) => other !== one);
          list();
          byId("choose").focus();
        }, { className: "quiet", "aria-label": texts.remove(one.name) }),
      ),
    ),
  );
}

function fields() {
  const values = { outputFormat: byId("format").value };
  for (const [name, field] of Object.entries(systems)) values[name] = field.value;
  for (const [name] of TEXT_FIELDS) values[name] = byId(name).value.trim();
  if (byId("keepCoordinates").checked) values.keepCoordinates = "true";
  return values;
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key.keep(byId("key").value.trim());
  byId("key").value = "";
  byId("key-hint").textContent = texts.keyHint;
  enter();
});
byId("forget").addEventListener("click", () => {
  key.forget();
  location.reload();
});
byId("refresh").addEventListener("click", refresh);
byId("choose").addEventListener("click", () => byId("files").click());
byId("files").addEventListener("change", (event) => {
  add(chosen(event.target.files));
  event.target.value = "";
});
byId("convert-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!files.length) {
    byId("form-message").textContent = texts.noFiles;
    byId("choose").focus();
    return;
  }
  const wanted = fields();
  const showsMaps = files.length <= MOST_MAPS;
  for (const one of files) card(one.name).convert(one, wanted, showsMaps);
  files = [];
  list();
});

const drop = byId("drop");
let depth = 0;
const over = (change) => {
  depth = Math.max(0, change ? depth + change : 0);
  drop.classList.toggle("over", depth > 0);
};
document.addEventListener("dragenter", () => over(1));
document.addEventListener("dragleave", () => over(-1));
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  over(0);
  if (!byId("convert-form").hidden) add(await dropped(event.dataTransfer));
});

/** Fills in the key of the link that led here; a key that this tab has stays. */
function offer() {
  const offered = key.offered();
  if (!offered || key.read()) return;
  byId("key").value = offered;
  byId("key-hint").textContent = texts.keyOffered;
}

build();
offer();
enter();
