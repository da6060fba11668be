/** The interface of the server. Every call sends the key, which is kept in this tab only. */

import { texts } from "./texts.js";

const ROOT = "api/geo";
const KEPT = "geomill.key";
const MOST_TRIES = 20;
const LONGEST_PAUSE_SECONDS = 10;
const BUSY = new Set([429, 503]);
const AWAY = new Set([0, 502, 504]);

/** The server refused a request; `status` is 0 if it could not be reached. */
export class Refused extends Error {
  constructor(message, status, retryAfter = 0) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.isBusy = BUSY.has(status);
    this.mayPass = retryAfter > 0 || this.isBusy || AWAY.has(status);
  }
}

export const key = {
  /** Returns the key in the address, which then forgets it. Anybody can make such a link: it is not used unasked. */
  offered() {
    const given = new URLSearchParams(location.hash.slice(1)).get("key");
    if (given) history.replaceState(null, "", location.pathname + location.search);
    return given;
  },
  read: () => sessionStorage.getItem(KEPT),
  keep: (value) => sessionStorage.setItem(KEPT, value),
  forget: () => sessionStorage.removeItem(KEPT),
};

/** Waits; ends early if `signal` aborts. */
export const pause = (milliseconds, signal) =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

/** Calls the interface and returns what `read` makes of its response, by default its record; null if it has none. */
export async function call(path, { method = "GET", signal, read = (response) => response.json() } = {}) {
  let response;
  try {
    response = await fetch(`${ROOT}/${path}`, { method, signal, headers: { "X-API-Key": key.read() ?? "" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(texts.offline, 0);
  }
  if (!response.ok) throw refusal(response.status, await response.text(), response.headers.get("Retry-After"));
  return response.status === 204 ? null : read(response);
}

/** Cancels a job; one that has completed meanwhile keeps its result. */
export async function cancelJob(jobId) {
  try {
    await call(`convert/jobs/${jobId}?only=open`, { method: "DELETE" });
  } catch (error) {
    if (error.status !== 409) throw error;
  }
}

/** Calls again for as long as the server is busy or away; `told` hears of each pause, and of its reason. */
export async function patiently(act, told, signal) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await act();
    } catch (error) {
      if (!error.mayPass || tries === MOST_TRIES) throw error;
      const seconds = Math.min(error.retryAfter || tries, LONGEST_PAUSE_SECONDS);
      told(error.isBusy ? texts.busy(seconds) : texts.away(seconds), error);
      await pause(seconds * 1000, signal);
    }
  }
}

/** Returns a key under which one file may be sent several times, and is converted once. */
export const newIdempotencyKey = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

/** Sends one file to be converted and returns the record of its job; `told` hears which share has been sent. */
export function upload(file, name, fields, idempotencyKey, told, signal) {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) if (value) form.append(field, value);
  form.append("file", file, name);
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    signal.addEventListener("abort", () => request.abort());
    request.upload.addEventListener("progress", (event) => told(event.total ? event.loaded / event.total : 0));
    request.addEventListener("abort", () => reject(signal.reason));
    request.addEventListener("error", () => reject(new Refused(texts.offline, 0)));
    request.addEventListener("load", () => {
      if (request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(refusal(request.status, request.responseText, request.getResponseHeader("Retry-After")));
    });
    request.open("POST", `${ROOT}/convert/file`);
    request.setRequestHeader("X-API-Key", key.read() ?? "");
    request.setRequestHeader("Prefer", "respond-async");
    request.setRequestHeader("Idempotency-Key", idempotencyKey);
    request.send(form);
  });
}

function refusal(status, body, retryAfter) {
  let message = `${status}`;
  try {
    message = JSON.parse(body).detail ?? message;
  } catch {
    // A gateway in front of the server may respond with anything.
  }
  return new Refused(message, status, Number(retryAfter) || 0);
}
