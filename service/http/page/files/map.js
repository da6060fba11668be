/** A map of a preview over an outline of the world, and a table of its first rows. */

import { button, element, table } from "./dom.js";
import { MANY, layerClass } from "./layer.js";
import { parsed } from "./parsing.js";
import { boxOf, shapeAt, shapesOf } from "./shapes.js";
import { texts } from "./texts.js";

const START = { padding: [24, 24], maxZoom: 12 };
const REACH = 5; // pixels between a pointer and the feature that it means
const ROWS = 50;
const COLUMNS = 12;
const FILES = "page";
let parts = null;

/** Shows a preview, given as its text, in `place`: a map, a table, and the attributes of the feature that is chosen. */
export async function preview(place, name, text) {
  const { features, preview: about } = await parsed(text);
  const attributes = element("div", { className: "attributes", role: "status", "aria-live": "polite" });
  const view = element("div", { className: "preview" });
  place.replaceChildren(view);
  const places = features.filter((feature) => feature.geometry);
  let show = null;
  if (places.length) {
    const map = element("div", { className: "map", role: "application", "aria-label": texts.mapLabel(name), tabIndex: 0 });
    const help = element("p", { className: "hint" }, texts.mapHelp);
    view.append(map, help, attributes);
    const loaded = await (parts ??= load()).catch(() => (parts = null));
    if (!view.isConnected) return;
    if (loaded) {
      show = await draw(...loaded, map, places, (feature) => describe(attributes, feature));
    } else {
      map.replaceWith(element("p", { className: "note" }, texts.mapMissing));
      help.remove();
    }
  } else {
    view.append(element("p", { className: "note" }, about.reason ?? texts.noPlaces), attributes);
  }
  if (!view.isConnected) return;
  const limits = [
    about.complete || !features.length ? null : texts.partial(about.shown, about.featureCount),
    about.simplified ? texts.simplified : null,
  ].filter(Boolean);
  if (limits.length) view.append(element("p", { className: about.complete ? "hint" : "note" }, limits.join(" ")));
  if (features.length) {
    view.append(
      rows(features, about.featureCount, (feature) => {
        describe(attributes, feature);
        show?.(feature);
      }),
    );
  }
}

/** Loads the library and the outline of the world, which are needed for the first map only. */
function load() {
  const style = element("link", { rel: "stylesheet", href: `${FILES}/leaflet.css` });
  const script = element("script", { src: `${FILES}/leaflet.js` });
  const loaded = (node) => new Promise((resolve, reject) => ((node.onload = resolve), (node.onerror = reject)));
  const ready = [loaded(style), loaded(script)];
  document.head.append(style, script);
  const outline = fetch(`${FILES}/world.json`).then((response) => (response.ok ? response.json() : []));
  const land = outline.then((rings) => shapesOf([{ geometry: { type: "MultiPolygon", coordinates: rings.map((ring) => [ring]) } }]));
  return Promise.all([...ready, land]).then(([, , shapes]) => [window.L, shapes]);
}

/** Draws features on a map; returns what shows one of them. `chosen` hears which feature was clicked. */
async function draw(L, land, node, features, chosen) {
  const shapes = await shapesOf(features);
  const color = colorsOf(node);
  const Layer = layerClass(L);
  const map = L.map(node, { minZoom: 0, maxZoom: 20, zoomSnap: 0.5, attributionControl: false, fadeAnimation: false });
  const [width, radius] = shapes.length > MANY ? [0.75, 1.5] : [1.5, 5];
  const plain = { line: color("--feature"), fill: color("--feature"), opacity: 0.3, width, radius };
  const marked = new Layer([], { line: color("--marked"), fill: color("--marked"), opacity: 0.6, width: 3, radius: radius + 1 });
  const mark = (feature) => {
    const own = shapes.filter((shape) => shape.feature === feature);
    marked.set(own);
    return own;
  };
  const under = (event) => {
    const { x, y } = map.project(event.latlng, 0);
    return shapeAt(shapes, x, y, REACH / 2 ** map.getZoom())?.feature;
  };
  show(L, map, shapes, START);
  for (const layer of [new Layer(land, { line: color("--coast"), fill: color("--land"), opacity: 1, width: 0.7, radius }), new Layer(shapes, plain), marked]) layer.addTo(map);
  map.on("click", (event) => {
    const feature = under(event);
    if (!feature) return;
    mark(feature);
    chosen(feature);
  });
  map.on("mousemove", (event) => node.classList.toggle("over", Boolean(under(event))));
  new ResizeObserver(() => map.invalidateSize()).observe(node);
  return (feature) => show(L, map, mark(feature), { maxZoom: Math.max(map.getZoom(), 8), padding: [48, 48] });
}

/** Moves the map to shapes: to the whole world if there are none. */
function show(L, map, shapes, options) {
  const { left, top, right, bottom } = boxOf(shapes);
  const corners = [L.point(left, bottom), L.point(right, top)];
  if (shapes.length) map.fitBounds(corners.map((corner) => map.unproject(corner, 0)), options);
  else map.setView([20, 0], 1);
}

/** Returns what resolves a variable of the style sheet, which a canvas does not know. */
function colorsOf(node) {
  const probe = element("span", { hidden: true });
  node.append(probe);
  return (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
}

function describe(node, feature) {
  const origin = document.activeElement;
  const close = () => {
    node.replaceChildren();
    origin.focus({ preventScroll: true });
  };
  const found = Object.entries(feature.properties ?? {});
  node.replaceChildren(
    element("h4", {}, feature.layer ? `${texts.attributes}, ${feature.layer}` : texts.attributes),
    found.length
      ? element("div", { className: "values", tabIndex: 0, role: "group", "aria-label": texts.attributes }, element("dl", {}, ...found.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, inWords(value))])))
      : element("p", { className: "hint" }, texts.noAttributes),
    button(texts.close, close, { className: "quiet" }),
  );
}

function rows(features, all, show) {
  const first = features.slice(0, ROWS);
  const names = [...new Set(first.flatMap((feature) => Object.keys(feature.properties ?? {})))].slice(0, COLUMNS);
  const cells = first.map((feature, index) => [
    feature.geometry ? button(`${index + 1}`, () => show(feature), { className: "link", "aria-label": texts.showFeature(index + 1) }) : `${index + 1}`,
    ...names.map((name) => inWords(feature.properties?.[name])),
  ]);
  const caption = texts.firstRows(first.length, all);
  return element("details", {}, element("summary", {}, `${texts.table}: ${caption}`), table(caption, [texts.number, ...names], cells));
}

function inWords(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
