// Requests to the server the page came from. Its error sentences reach the reader as they are.

import { find } from "./dom.js";

const KEY = "tacit-key";

export class ServiceError extends Error {
  constructor(message, status) {
    super(message);
    this.name = "ServiceError";
    this.status = status;
  }
}

export const hasKey = () => storedKey() !== null;

function storedKey() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function storeKey(key) {
  try {
    if (key === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, key);
  } catch {
    // Without storage the key is asked for again.
  }
  find("forget-key").hidden = key === null;
}

export const forgetKey = () => storeKey(null);

/** One answer, asking for a key when the server does; `json` is sent as the body. */
export async function request(path, { method = "GET", json, body, signal } = {}) {
  for (;;) {
    const headers = {};
    const key = storedKey();
    if (key) headers.Authorization = `Bearer ${key}`;
    if (json !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, { method, headers, signal, body: json === undefined ? body : JSON.stringify(json) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServiceError("The service does not answer. Check that it is running and that you are connected.", 0);
    }
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (response.status !== 401) throw problem;
    // Another request may have been given a key while this one was on its way.
    if (storedKey() === key && !(await askForKey(problem.message))) throw problem;
  }
}

export const getJson = async (path, given) => (await request(path, given)).json();
export const postJson = (path, json, signal) => getJson(path, { method: "POST", json, signal });

async function problemOf(response) {
  let message = null;
  try {
    message = (await response.json()).error.message;
  } catch {
    // Not the service's own answer; a proxy between, perhaps.
  }
  return new ServiceError(message ?? `The server answered with status ${response.status}. Try again.`, response.status);
}

let asking = null;

/** Whether a key was given. All requests that wait for one share the question. */
function askForKey(message) {
  asking ??= new Promise((resolve) => {
    const dialog = find("key-dialog");
    find("key-message").textContent = message;
    find("key").value = "";
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => {
        const key = find("key").value.trim();
        find("key").value = "";
        asking = null;
        const given = dialog.returnValue === "use" && key !== "";
        if (given) storeKey(key);
        resolve(given);
      },
      { once: true },
    );
    dialog.showModal();
  });
  return asking;
}

/** Server-sent events, read with fetch because EventSource cannot send a key. */
export async function* events(path, signal) {
  const response = await request(path, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting = (waiting + value).replaceAll("\r\n", "\n");
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event) yield event;
    }
  }
}

export function parseEvent(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) } : null;
}
