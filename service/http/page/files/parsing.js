/** Parses the text of a preview in pieces, because 5 MB at once would stop the page for longer than a few frames. */

import { pause } from "./api.js";

const PIECE = 200_000; // characters
const HEAD = '"features":[';
const TAIL = '],"preview":';

/** Returns the document. One that does not have each feature on a line of its own is parsed at once. */
export async function parsed(text) {
  const from = text.indexOf(HEAD) + HEAD.length;
  const to = text.lastIndexOf(TAIL);
  if (to < from) return JSON.parse(text);
  const features = [];
  for (let at = from; at < to; ) {
    const end = text.indexOf(",\n", at + PIECE);
    const next = end < 0 || end > to ? to : end;
    features.push(...JSON.parse(`[${text.slice(at, next)}]`));
    at = next + 1;
    await pause(0);
  }
  return { ...JSON.parse(text.slice(0, from) + text.slice(to)), features };
}
