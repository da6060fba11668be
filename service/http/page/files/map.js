/** A map of a preview over an outline of the world, and a table of its first rows. */

import { button, element, table } from "./dom.js";
import { texts } from "./texts.js";

const ROWS = 50;
const COLUMNS = 12;
const FILES = "page";
let parts = null;

/** Shows a preview in `place`: a map, a table, and the attributes of the feature that is chosen. */
export async function preview(place, name, document_) {
  const { features, preview: about } = document_;
  const attributes = element("div", { className: "attributes", role: "status", "aria-live": "polite" });
  const view = element("div", { className: "preview" });
  place.replaceChildren(view);
  const places = features.filter((feature) => feature.geometry);
  let show = null;
  if (places.length) {
    const map = element("div", { className: "map", role: "application", "aria-label": texts.mapLabel(name), tabIndex: 0 });
    const help = element("p", { className: "hint" }, texts.mapHelp);
    view.append(map, help, attributes);
    try {
      const [leaflet, world] = await (parts ??= load());
      show = draw(leaflet, world, map, places, (feature) => describe(attributes, feature));
    } catch {
      parts = null;
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

/** Loads the library and the outline, which are needed for the first map only. */
function load() {
  const style = element("link", { rel: "stylesheet", href: `${FILES}/leaflet.css` });
  const script = element("script", { src: `${FILES}/leaflet.js` });
  const loaded = (node) => new Promise((resolve, reject) => ((node.onload = resolve), (node.onerror = reject)));
  const ready = [loaded(style), loaded(script)];
  document.head.append(style, script);
  const outline = fetch(`${FILES}/world.json`).then((response) => (response.ok ? response.json() : []));
  return Promise.all([...ready, outline]).then(([, , world]) => [window.L, world]);
}

function draw(L, world, node, features, chosen) {
  const probe = element("span", { hidden: true });
  node.append(probe);
  const color = (name) => {
    probe.style.color = `var(${name})`; // a canvas knows no variables
    return getComputedStyle(probe).color;
  };
  const map = L.map(node, { preferCanvas: true, minZoom: 0, maxZoom: 20, zoomSnap: 0.5, attributionControl: false, fadeAnimation: false, worldCopyJump: false });
  const renderer = L.canvas({ padding: 0.3, tolerance: 4 });
  const land = world.map((ring) => ring.map(([x, y]) => [y, x]));
  L.polygon(land.map((ring) => [ring]), { renderer: L.canvas({ padding: 0.3 }), interactive: false, weight: 0.7, color: color("--coast"), fillColor: color("--land"), fillOpacity: 1 }).addTo(map);
  const usual = { renderer, color: color("--feature"), fillColor: color("--feature"), weight: 1.5, fillOpacity: 0.25, opacity: 0.9 };
  const marked = { color: color("--marked"), fillColor: color("--marked"), fillOpacity: 0.55, weight: 3 };
  const layers = new Map();
  let last = null;
  const mark = (layer) => {
    last?.setStyle?.(usual);
    last = layer;
    layer.setStyle?.(marked);
    layer.bringToFront?.();
  };
  const group = L.geoJSON(features, {
    style: () => usual,
    pointToLayer: (_, at) => L.circleMarker(at, { ...usual, radius: features.length > 5000 ? 2.5 : 5, weight: 1, fillOpacity: 0.6 }),
    onEachFeature: (feature, layer) => {
      layers.set(feature, layer);
      layer.on("click", () => {
        mark(layer);
        chosen(feature);
      });
    },
  }).addTo(map);
  const bounds = group.getBounds();
  if (bounds.isValid()) map.fitBounds(bounds, { padding: [24, 24], maxZoom: 12 });
  else map.setView([20, 0], 1);
  new ResizeObserver(() => map.invalidateSize()).observe(node);
  return (feature) => {
    const layer = layers.get(feature);
    if (!layer) return;
    mark(layer);
    if (layer.getBounds) map.fitBounds(layer.getBounds(), { maxZoom: Math.max(map.getZoom(), 8), padding: [48, 48] });
    else map.panTo(layer.getLatLng());
  };
}

function describe(node, feature) {
  const found = Object.entries(feature.properties ?? {});
  node.replaceChildren(
    element("h4", {}, feature.layer ? `${texts.attributes}, ${feature.layer}` : texts.attributes),
    found.length
      ? element("dl", {}, ...found.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, text(value))]))
      : element("p", { className: "hint" }, texts.noAttributes),
    button(texts.close, () => node.replaceChildren(), { className: "quiet" }),
  );
}

function rows(features, all, show) {
  const first = features.slice(0, ROWS);
  const names = [...new Set(first.flatMap((feature) => Object.keys(feature.properties ?? {})))].slice(0, COLUMNS);
  const cells = first.map((feature, index) => [
    feature.geometry ? button(`${index + 1}`, () => show(feature), { className: "link", "aria-label": texts.showFeature(index + 1) }) : `${index + 1}`,
    ...names.map((name) => text(feature.properties?.[name])),
  ]);
  const caption = texts.firstRows(first.length, all);
  return element("details", {}, element("summary", {}, `${texts.table}: ${caption}`), table(caption, [texts.number, ...names], cells));
}

function text(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
