/** Features as flat shapes on a map of the world that is 256 pixels wide: quick to draw, and to find under a pointer. */

import { pause } from "./api.js";

export const POINT = "point";
export const LINE = "line";
export const AREA = "area";
const WORLD = 256;
const NORTHMOST = 85.0511287798; // where the map of the world is as high as it is wide
const SLICE_MS = 8;

/** The shapes of each type of geometry, each with its parts: lists of positions. */
const SHAPES = {
  Point: (place) => [[POINT, [[place]]]],
  MultiPoint: (places) => places.map((place) => [POINT, [[place]]]),
  LineString: (line) => [[LINE, [line]]],
  MultiLineString: (lines) => [[LINE, lines]],
  Polygon: (rings) => [[AREA, rings]],
  MultiPolygon: (areas) => areas.map((rings) => [AREA, rings]),
};

/** Returns the shapes of the features, in their order; pauses so often that the page stays responsive. */
export async function shapesOf(features) {
  const shapes = [];
  let end = performance.now() + SLICE_MS;
  for (const feature of features) {
    add(shapes, feature.geometry, feature);
    if (performance.now() < end) continue;
    await pause(0);
    end = performance.now() + SLICE_MS;
  }
  return shapes;
}

/** Returns the smallest box around shapes, which is that around the corners of their boxes. */
export const boxOf = (shapes) => boxOfPart(shapes.flatMap(({ left, top, right, bottom }) => [left, top, right, bottom]));

/** Returns the uppermost shape within `reach` of a place. */
export const shapeAt = (shapes, x, y, reach) =>
  shapes.findLast(
    (shape) =>
      shape.left - reach <= x && x <= shape.right + reach && shape.top - reach <= y && y <= shape.bottom + reach && touches(shape, x, y, reach),
  );

function add(shapes, geometry, feature) {
  for (const one of geometry.geometries ?? []) add(shapes, one, feature);
  for (const [kind, positions] of SHAPES[geometry.type]?.(geometry.coordinates) ?? []) {
    const parts = positions.map(flat).filter((part) => part.length);
    if (kind === AREA) parts.forEach(orient);
    const box = boxOf(parts.map(boxOfPart));
    if (box.left <= box.right && box.top <= box.bottom) shapes.push({ kind, parts, feature, ...box });
  }
}

/** Projects positions to x, y, x, y, … */
function flat(positions) {
  const part = [];
  for (const [longitude, latitude] of positions) {
    const sine = Math.sin((Math.max(-NORTHMOST, Math.min(NORTHMOST, latitude)) * Math.PI) / 180);
    part.push(WORLD * (longitude / 360 + 0.5), WORLD * (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)));
  }
  return part;
}

function boxOfPart(part) {
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let at = 0; at < part.length; at += 2) {
    if (part[at] < box.left) box.left = part[at];
    if (part[at] > box.right) box.right = part[at];
    if (part[at + 1] < box.top) box.top = part[at + 1];
    if (part[at + 1] > box.bottom) box.bottom = part[at + 1];
  }
  return box;
}

/** Turns outer rings one way and holes the other, so that many areas can be filled at once. */
function orient(ring, index) {
  let sum = 0;
  for (let at = 0, last = ring.length - 2; at < ring.length; last = at, at += 2) sum += ring[last] * ring[at + 1] - ring[at] * ring[last + 1];
  if (sum < 0 === (index === 0)) {
    ring.reverse(); // y, x, y, x, …
    for (let at = 0; at < ring.length; at += 2) [ring[at], ring[at + 1]] = [ring[at + 1], ring[at]];
  }
}

function touches({ kind, parts }, x, y, reach) {
  if (kind === POINT) return Math.hypot(parts[0][0] - x, parts[0][1] - y) <= reach;
  let isInside = false;
  for (const part of parts) {
    for (let at = 2; at < part.length; at += 2) {
      const [x1, y1, x2, y2] = [part[at - 2], part[at - 1], part[at], part[at + 1]];
      if (distance(x, y, x1, y1, x2, y2) <= reach) return true;
      if (kind === AREA && y1 > y !== y2 > y && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1)) isInside = !isInside;
    }
  }
  return isInside;
}

/** Returns the distance of a place from the line between two others. */
function distance(x, y, x1, y1, x2, y2) {
  const [across, down] = [x2 - x1, y2 - y1];
  const along = ((x - x1) * across + (y - y1) * down) / (across * across + down * down || 1);
  const share = Math.max(0, Math.min(1, along));
  return Math.hypot(x1 + share * across - x, y1 + share * down - y);
}
