/** ZIP archives, written here so that loose parts of one dataset can be sent as one file. */

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
const UTF8 = 0x0800;
const DEFLATE = 8;
const DATE = 0x21; // 1 January 1980, the first day that the format knows

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** Returns a ZIP archive of `entries`, each with a `path` and a `file`. */
export async function zip(entries) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const { path, file } of entries) {
    const name = new TextEncoder().encode(path);
    const content = new Uint8Array(await file.arrayBuffer());
    const packed = await deflate(content);
    const sizes = [crc32(content), packed.length, content.length];
    const local = header(30, [[LOCAL, 4], [VERSION, 2], [UTF8, 2], [DEFLATE, 2], [0, 2], [DATE, 2], ...sizes.map((size) => [size, 4]), [name.length, 2], [0, 2]]);
    directory.push(
      header(46, [[CENTRAL, 4], [VERSION, 2], [VERSION, 2], [UTF8, 2], [DEFLATE, 2], [0, 2], [DATE, 2], ...sizes.map((size) => [size, 4]), [name.length, 2], [0, 2], [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]),
      name,
    );
    parts.push(local, name, packed);
    offset += local.length + name.length + packed.length;
  }
  const length = directory.reduce((total, part) => total + part.length, 0);
  const count = entries.length;
  const end = header(22, [[END, 4], [0, 2], [0, 2], [count, 2], [count, 2], [length, 4], [offset, 4], [0, 2]]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

async function deflate(content) {
  const stream = new Blob([content]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function crc32(content) {
  let value = 0xffffffff;
  for (const byte of content) value = CRC[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

function header(length, fields) {
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [value, size] of fields) {
    if (size === 4) view.setUint32(at, value, true);
    else view.setUint16(at, value, true);
    at += size;
  }
  return bytes;
}
