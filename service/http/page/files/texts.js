/** Every text of the page. A function takes what varies. */

const number = new Intl.NumberFormat("en");
const plural = (count, one, many) => `${number.format(count)} ${count === 1 ? one : many}`;

/** Returns a count of bytes in words. */
export function bytes(count) {
  const units = ["bytes", "KB", "MB", "GB"];
  let unit = 0;
  let shown = count;
  while (shown >= 1000 && unit < units.length - 1) {
    shown /= 1000;
    unit += 1;
  }
  return `${unit && shown < 100 ? shown.toFixed(1) : number.format(Math.round(shown))} ${units[unit]}`;
}

export const texts = {
  skip: "Skip to the content",
  docs: "API documentation",
  title: "Convert geospatial files",
  lead: "Drop a file, choose a format, see the result on a map. You are told exactly what a format cannot hold.",
  footer: "Files are converted on this server, in a sandbox, and results are deleted at the end of their retention.",

  key: "Your API key",
  keyHint: "It is kept in this browser tab until you close it, and sent to this server only.",
  keyOffered: "The link that you followed has filled in this key. Whoever made the key can see what you convert with it: use it only if you trust the link.",
  useKey: "Use this key",
  forgetKey: "Forget the key",
  keyRefused: "The server does not know this key. Check that you have copied all of it.",

  drop: "Drop files here",
  dropHint: "GeoJSON, Shapefile, GeoPackage, KML, CSV and many more. Drop the loose parts of a Shapefile together.",
  choose: "Choose files",
  remove: (name) => `Remove ${name}`,
  zipped: (count) => `${count} parts, zipped here`,
  format: "Convert to",
  automatic: "Automatic: GeoJSON or Shapefile",
  unavailable: (title) => `${title} (not available here)`,
  target: "Coordinate system of the result",
  source: "Coordinate system of the input",
  systemHint: "Name, place or EPSG code",
  systemsFound: (count) => plural(count, "coordinate system found", "coordinate systems found"),
  noSystems: "No coordinate system found",
  options: "More options",
  layer: "Layer",
  xField: "Column with x or longitude",
  yField: "Column with y or latitude",
  zField: "Column with elevations",
  wktField: "Column with geometries (WKT)",
  keepCoordinates: "Keep coordinates of an unknown system unchanged",
  onlyIfNeeded: "if there are several",
  onlyTables: "for tables with unusual names",
  sourceHint: "if the file records none",
  convert: "Convert",
  noFiles: "Choose a file first.",
  inTheForm: (labels) => `In the form above: ${labels.map((label) => `“${label}”`).join(", ")}.`,
  chosen: (count) => plural(count, "file", "files"),

  results: "Results",
  queued: "Waits for the other uploads",
  uploading: (share) => `Uploading, ${Math.round(share * 100)} %`,
  busy: (seconds) => `The server is busy; trying again in ${plural(seconds, "second", "seconds")}`,
  away: (seconds) => `The server cannot be reached; trying again in ${plural(seconds, "second", "seconds")}`,
  stages: {
    waiting: "Waiting for a converter",
    reading: "Reading the file",
    converting: "Converting",
    verifying: "Checking the result",
    storing: "Storing the result",
  },
  doing: ({ status, progress }) => {
    const stage = texts.stages[progress?.stage] ?? texts[status];
    return progress?.share === undefined ? stage : `${stage}, ${Math.round(progress.share * 100)} %`;
  },
  Pending: "Waiting for a converter",
  Processing: "Converting",
  Completed: "Converted",
  Failed: "Not converted",
  Expired: "Result deleted",
  outcomeUnknown: "Connection lost: see “Recent conversions” later",
  cancelled: "Cancelled",
  cancel: "Cancel",
  cancelling: "Cancelling",
  dismiss: "Hide",
  erase: "Delete the result",
  eraseSure: "Delete for good?",
  erased: "The result was deleted.",
  downloadSize: (size) => `Download, ${bytes(size)}`,
  linkExpired: "The result is no longer kept. Convert the file again.",
  offline: "The server cannot be reached. Check the connection and try again.",
  upgrade: "A larger plan lifts this limit.",
  features: (count) => plural(count, "feature", "features"),
  epsg: (code) => `EPSG:${code}`,
  seconds: (ms) => (ms < 1000 ? `${number.format(ms)} ms` : `${(ms / 1000).toFixed(1)} s`),
  became: (from, to) => `${from} → ${to}`,
  warnings: (count) => plural(count, "note on this conversion", "notes on this conversion"),
  nothingLost: "Nothing was lost.",
  losses: "What the Shapefile could not hold",
  lossColumns: ["Kind", "Where", "What happened"],
  layersFound: "Layers in the file",

  table: "Table",
  showMap: "Show on a map",
  loadingMap: "Preparing the preview",
  mapLabel: (name) => `Map of ${name}`,
  mapHelp: "Drag or use the arrow keys to move, + and − to zoom. Click a feature for its attributes.",
  mapMissing: "The map is missing on this server, because it was set up without the files of Leaflet: its operator can add them with “./just page”. Downloads work.",
  noPlaces: "The result has no geometry that can be shown on a map.",
  partial: (shown, all) => `The preview shows the first ${number.format(shown)} of ${number.format(all)} features. The download has all of them.`,
  simplified: "Lines and areas are simplified for the preview.",
  firstRows: (shown, all) => (shown < all ? `The first ${number.format(shown)} of ${number.format(all)} features` : plural(all, "feature", "features")),
  attributes: "Attributes",
  noAttributes: "This feature has no attributes.",
  number: "No.",
  showFeature: (index) => `Show feature ${index} on the map`,
  close: "Close",

  history: "Recent conversions",
  refresh: "Refresh",
  noHistory: "There are no conversions yet.",
  historyColumns: ["File", "Status", "Features", "Time", "Result"],
  details: "Details",
  detailsOf: (name) => `Details of ${name}`,
  downloadOf: (name) => `Download the result of ${name}`,
};

/** The labels of fields that the server's sentences call by the names of the interface; one is an ordinary word. */
const LABELS = {
  outputFormat: texts.format,
  "field layer": texts.layer,
  targetEpsg: texts.target,
  sourceEpsg: texts.source,
  xField: texts.xField,
  yField: texts.yField,
  zField: texts.zField,
  wktField: texts.wktField,
  keepCoordinates: texts.keepCoordinates,
};

/** Returns the labels of the fields that a sentence of the server names. */
export const fieldsNamed = (sentence) => Object.keys(LABELS).filter((name) => new RegExp(`\\b${name}\\b`).test(sentence)).map((name) => LABELS[name]);

/** Returns the rows of a data-loss report: kind, place and consequence of each finding. */
export function lossRows(report) {
  return [
    ...report.fieldNameTruncations.map((one) => ["Name shortened", one.original, `is now ${one.truncated}`]),
    ...report.fieldNameCollisions.map((one) => ["Names collide", one.fields.join(", "), `are all ${one.truncatedName} when shortened`]),
    ...report.valueTruncations.map((one) => [
      "Values cut",
      one.field,
      `after ${one.limit} bytes in ${plural(one.affectedFeatures, "feature", "features")}; the longest had ${number.format(one.maxLength)}`,
    ]),
    ...report.geometryCoercions.map((one) => ["Geometry changed", one.types.join(", "), one.detail]),
  ];
}
