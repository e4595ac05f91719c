// What the page finds out about a file before sending it: its format and its columns, from the first bytes, here in the
// browser. The server decides; this only saves typing names.

const FORMATS = {
  txt: "txt", text: "txt", csv: "csv", tsv: "tsv", tab: "tsv",
  jsonl: "jsonl", ndjson: "jsonl", parquet: "parquet", pq: "parquet",
};

const START = 1 << 18;

export function formatOf(name) {
  const suffix = name.toLowerCase().replace(/\.gz$/, "").split(".").pop();
  return FORMATS[suffix] ?? null;
}

/** The columns of a file; an empty list where it has none (txt), null where they cannot be read here. */
export async function columnsOf(file) {
  const format = formatOf(file.name);
  if (format === "txt") return [];
  if (format === null) return null;
  try {
    if (format === "parquet") return await parquetColumns(file);
    const start = await firstText(file);
    return format === "jsonl" ? jsonColumns(start) : headerColumns(start, format === "csv" ? "," : "\t");
  } catch {
    return null;
  }
}

/** About how many rows a file has, without its header; null where that cannot be told here (parquet, gzip). Line breaks
 * inside of quotes are no rows. */
export async function rowsOf(file) {
  const format = formatOf(file.name);
  if (format === null || format === "parquet" || file.name.toLowerCase().endsWith(".gz")) return null;
  const [quote, line] = [34, 10];
  let quoted = false;
  let lines = 0;
  let last = line;
  const reader = file.stream().getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    for (const byte of value) {
      if (byte === quote && format === "csv") quoted = !quoted;
      else if (byte === line && !quoted && last !== line) lines += 1;
      if (byte !== 13) last = byte;
    }
  }
  if (last !== line) lines += 1;
  return Math.max(0, format === "csv" || format === "tsv" ? lines - 1 : lines);
}

async function firstText(file) {
  const decoder = new TextDecoder();
  if (!file.name.toLowerCase().endsWith(".gz")) {
    return decoder.decode(await file.slice(0, START).arrayBuffer()).replace(/^\uFEFF/, "");
  }
  // Enough of a compressed file is read; that it then breaks off is expected.
  const reader = file.slice(0, START).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  let text = "";
  try {
    while (text.length < START) {
      const { value, done } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
  } catch {
    if (text === "") throw new Error("not a gzip file");
  }
  return text.replace(/^\uFEFF/, "");
}

/** The first record of a csv or tsv text: fields in quotes may hold separators, quotes and line breaks. */
export function headerColumns(text, separator) {
  const fields = [];
  let field = "";
  let quoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const sign = text[index];
    if (quoted) {
      if (sign !== '"') field += sign;
      else if (text[index + 1] === '"') field += text[(index += 1)];
      else quoted = false;
    } else if (sign === '"' && field === "") quoted = true;
    else if (sign === separator) {
      fields.push(field);
      field = "";
    } else if (sign === "\n" || sign === "\r") break;
    else field += sign;
  }
  return [...fields, field];
}

/** The keys of the first object. */
export function jsonColumns(text) {
  const line = text.split("\n").find((one) => one.trim() !== "");
  return Object.keys(JSON.parse(line));
}

/** The top-level names in the footer of a parquet file. */
async function parquetColumns(file) {
  const tail = new DataView(await file.slice(-8).arrayBuffer());
  const length = tail.getUint32(0, true);
  return schemaNames(new Uint8Array(await file.slice(-8 - length, -8).arrayBuffer()));
}

/** Names of the direct children of the root in a parquet FileMetaData (Thrift compact protocol). */
export function schemaNames(bytes) {
  const elements = struct(cursorOf(bytes)).get(2);
  const names = [];
  let at = 1;
  const skip = () => {
    const children = elements[at].get(5) ?? 0;
    at += 1;
    for (let child = 0; child < children; child += 1) skip();
  };
  for (let child = 0; child < elements[0].get(5); child += 1) {
    names.push(new TextDecoder().decode(elements[at].get(4)));
    skip();
  }
  return names;
}

const cursorOf = (bytes) => ({ bytes, at: 0 });

function varint(cursor) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) throw new Error("the footer ends early");
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

const zigzag = (value) => Number((value >> 1n) ^ -(value & 1n));

function binary(cursor) {
  const length = Number(varint(cursor));
  cursor.at += length;
  return cursor.bytes.subarray(cursor.at - length, cursor.at);
}

function list(cursor) {
  const head = cursor.bytes[cursor.at++];
  const size = head >> 4 === 15 ? Number(varint(cursor)) : head >> 4;
  return Array.from({ length: size }, () => value(cursor, head & 15, true));
}

function struct(cursor) {
  const fields = new Map();
  let id = 0;
  for (;;) {
    const head = cursor.bytes[cursor.at++];
    if (head === undefined) throw new Error("the footer ends early");
    if (head === 0) return fields;
    id = head >> 4 ? id + (head >> 4) : zigzag(varint(cursor));
    fields.set(id, value(cursor, head & 15, false));
    // The schema is field 2 of the file; what follows (row groups) can be long and is not needed.
    if (id === 2 && Array.isArray(fields.get(2)) && fields.get(2)[0] instanceof Map) return fields;
  }
}

function value(cursor, type, inList) {
  if (type === 1 || type === 2) return inList ? cursor.bytes[cursor.at++] === 1 : type === 1;
  if (type === 3) return cursor.bytes[cursor.at++];
  if (type >= 4 && type <= 6) return zigzag(varint(cursor));
  if (type === 7) return void (cursor.at += 8);
  if (type === 8) return binary(cursor);
  if (type === 9 || type === 10) return list(cursor);
  if (type === 12) return struct(cursor);
  throw new Error(`unknown field type ${type}`);
}
