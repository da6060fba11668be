/** A layer of a Leaflet map that draws shapes in slices, so that no frame waits for all of them. */

import { element } from "./dom.js";
import { AREA, POINT } from "./shapes.js";

const MARGIN = 0.3; // of the map's size, on each side: what a drag brings into view is there already
const SLICE_MS = 6;
const SLICE_STEPS = 4000; // dots and corners: drawing them takes longer than telling the canvas about them
export const MANY = 5000; // from here on, details that nobody can see are left out
const BATCH = 100;

/** Returns the class of such layers; `style` is `{ line, fill, opacity, width, radius }`: colours, the opacity of areas, sizes in pixels. */
export const layerClass = (L) =>
  L.Layer.extend({
    initialize(shapes, style) {
      this.style = style;
      this.dot = dot(style);
      this.shapes = shapes;
    },

    getEvents() {
      return { moveend: this.draw, viewreset: this.place, zoom: this.place, zoomanim: this.place };
    },

    onAdd() {
      this.shown = { canvas: element("canvas"), corner: L.point(0, 0), zoom: 0 };
      this.getPane().append(this.shown.canvas);
      this.draw();
    },

    onRemove() {
      this.shown.canvas.remove();
    },

    /** Shows these shapes from now on. */
    set(shapes) {
      this.shapes = shapes;
      this.draw();
    },

    /** Puts what was drawn last where it belongs now, or at the end of an animation. */
    place(event) {
      const { canvas, corner, zoom } = this.shown;
      const isGoal = event?.type === "zoomanim";
      const [map, goal] = [this._map, isGoal ? event.zoom : this._map.getZoom()];
      const moved = L.DomUtil.getPosition(map.getPane("mapPane"));
      const origin = isGoal ? map.project(event.center, goal).subtract(map.getSize().divideBy(2)).add(moved).round() : map.getPixelOrigin();
      const scale = map.getZoomScale(goal, zoom);
      L.DomUtil.setTransform(canvas, corner.multiplyBy(scale).subtract(origin), scale);
    },

    /** Draws what the map shows now; a call meanwhile has it drawn once more. */
    async draw() {
      this.isStale = true;
      if (this.isDrawing) return;
      this.isDrawing = true;
      try {
        while (this.isStale && this._map) {
          this.isStale = false;
          const view = this.view();
          const isWhole = await this.paint(view);
          if (!isWhole) continue;
          this.shown.canvas.replaceWith(view.canvas);
          this.shown = view;
          this.place();
        }
      } finally {
        this.isDrawing = false;
      }
    },

    view() {
      const size = this._map.getSize();
      const margin = size.multiplyBy(MARGIN).round();
      const extent = size.add(margin.multiplyBy(2));
      const ratio = window.devicePixelRatio || 1;
      const canvas = element("canvas", { className: "leaflet-zoom-animated", width: extent.x * ratio, height: extent.y * ratio });
      canvas.style.width = `${extent.x}px`;
      canvas.style.height = `${extent.y}px`;
      return { canvas, ratio, extent, corner: this._map.getPixelBounds().min.subtract(margin).round(), zoom: this._map.getZoom() };
    },

    /** Draws into the canvas of a view; returns whether it is whole, which it is not once the map was zoomed or left. */
    async paint({ canvas, ratio, extent, corner, zoom }) {
      const brush = new Brush(canvas.getContext("2d"), ratio, this.style);
      const { shapes } = this;
      const scale = 2 ** zoom;
      const seen = shapes.length > MANY ? new Uint8Array(extent.x * extent.y) : null;
      let end = performance.now() + SLICE_MS;
      for (const shape of shapes) {
        const [left, top] = [shape.left * scale - corner.x, shape.top * scale - corner.y];
        const [right, bottom] = [shape.right * scale - corner.x, shape.bottom * scale - corner.y];
        if (right < 0 || bottom < 0 || left > extent.x || top > extent.y) continue;
        if (seen && right - left < 1 && bottom - top < 1) {
          const cell = Math.floor(Math.max(0, top)) * extent.x + Math.floor(Math.max(0, left));
          if (seen[cell]) continue;
          seen[cell] = 1;
        }
        if (shape.kind === POINT) brush.dot(this.dot, left, top);
        else brush.path(shape, scale, corner, seen ? BATCH : 1);
        if (brush.steps < SLICE_STEPS && performance.now() < end) continue;
        brush.flush();
        await new Promise(requestAnimationFrame);
        if (!this._map || this._map.getZoom() !== zoom) return false;
        brush.steps = 0;
        end = performance.now() + SLICE_MS;
      }
      brush.flush();
      return true;
    },
  });

/** Draws dots and paths; paths of a batch are drawn at once. */
class Brush {
  constructor(context, ratio, { line, fill, opacity, width }) {
    Object.assign(context, { lineJoin: "round", lineCap: "round", strokeStyle: line, lineWidth: width, fillStyle: fill });
    context.scale(ratio, ratio);
    this.context = context;
    this.opacity = opacity;
    this.kind = null;
    this.batched = 0;
    this.steps = 0;
    this.flush();
  }

  dot(picture, x, y) {
    this.context.drawImage(picture.canvas, x - picture.size / 2, y - picture.size / 2, picture.size, picture.size);
    this.steps += 1;
  }

  path({ kind, parts }, scale, corner, batch) {
    if (kind !== this.kind || this.batched >= batch) this.flush();
    this.kind = kind;
    this.batched += 1;
    for (const part of parts) this.trace(part, scale, corner);
  }

  /** Leaves out corners that are less than a pixel from the one before. */
  trace(part, scale, corner) {
    let [lastX, lastY] = [part[0] * scale - corner.x, part[1] * scale - corner.y];
    this.context.moveTo(lastX, lastY);
    for (let at = 2; at < part.length; at += 2) {
      const [x, y] = [part[at] * scale - corner.x, part[at + 1] * scale - corner.y];
      const isNear = Math.abs(x - lastX) < 1 && Math.abs(y - lastY) < 1;
      if (isNear && at < part.length - 2) continue;
      this.context.lineTo(x, y);
      [lastX, lastY] = [x, y];
      this.steps += 1;
    }
  }

  flush() {
    if (this.batched && this.kind === AREA) {
      this.context.globalAlpha = this.opacity;
      this.context.fill();
      this.context.globalAlpha = 1;
    }
    if (this.batched) this.context.stroke();
    this.context.beginPath();
    this.batched = 0;
  }
}

/** Returns a picture of a point: to copy it takes a small part of the time of drawing a circle. */
function dot({ line, fill, opacity, radius }) {
  const ratio = window.devicePixelRatio || 1;
  const size = 2 * (radius + 1);
  const canvas = element("canvas", { width: Math.ceil(size * ratio), height: Math.ceil(size * ratio) });
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.arc(size / 2, size / 2, radius, 0, 2 * Math.PI);
  Object.assign(context, { fillStyle: fill, strokeStyle: line, globalAlpha: opacity });
  context.fill();
  context.globalAlpha = 1;
  context.stroke();
  return { canvas, size };
}
