/** From what was dropped or chosen to what is sent: loose parts of one dataset become one archive. */

import { zip } from "./zip.js";

/** Datasets of several files: the extension of the main one, and those of its companions. */
const BUNDLES = {
  shp: ["shx", "dbf", "prj", "cpg", "sbn", "sbx", "qix", "qpj", "idx", "shp.xml"],
  tab: ["dat", "map", "id", "ind"],
  mif: ["mid"],
};
const FOLDER = /\.gdb$/i;
const MOST_FILES = 5000;

/** Returns the files of a drop, those in folders included, each with its `path`. */
export async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return chosen(transfer.files);
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

/** Returns chosen files, each with its `path`. */
export const chosen = (list) => [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));

async function walk(entry, folder, found) {
  if (found.length >= MOST_FILES) return;
  const path = folder + entry.name;
  if (entry.isFile) {
    found.push({ path, file: await new Promise((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const inside of some) await walk(inside, `${path}/`, found);
  }
}

/** Groups files into uploads: `name`, `size`, `parts`, and `content`, which makes what is sent. */
export function uploads(entries) {
  const groups = new Map();
  for (const entry of entries) {
    const id = groupOf(entry, entries);
    groups.set(id, [...(groups.get(id) ?? []), entry]);
  }
  return [...groups].map(([id, parts]) => ({
    name: parts.length > 1 || FOLDER.test(id) ? `${last(id).replace(FOLDER, "")}.zip` : last(parts[0].path),
    size: parts.reduce((total, part) => total + part.file.size, 0),
    parts: parts.length,
    content: () => (parts.length > 1 || FOLDER.test(id) ? zip(parts.map(({ path, file }) => ({ path: inside(path, id), file }))) : parts[0].file),
  }));
}

const last = (path) => path.split("/").at(-1);
const inside = (path, id) => path.slice(id.length - last(id).length);

function groupOf({ path }, entries) {
  const folders = path.split("/").slice(0, -1);
  const folder = folders.findIndex((name) => FOLDER.test(name));
  if (folder >= 0) return folders.slice(0, folder + 1).join("/");
  for (const [main, companions] of Object.entries(BUNDLES)) {
    for (const extension of [main, ...companions]) {
      const stem = path.slice(0, -extension.length - 1);
      if (!path.toLowerCase().endsWith(`.${extension}`)) continue;
      const isMain = (other) => other.path.toLowerCase() === `${stem}.${main}`.toLowerCase();
      if (entries.some(isMain)) return stem;
    }
  }
  return path;
}
