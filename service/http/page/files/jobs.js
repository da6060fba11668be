/** One card per file: from its upload to its result. */

import { Refused, call, cancelJob, newIdempotencyKey, patiently, pause, upload } from "./api.js";
import { button, element, table } from "./dom.js";
import { bytes, fieldsNamed, lossRows, texts } from "./texts.js";

const WAIT_SECONDS = 2; // so that the stage that is shown is the current one
const AT_ONCE = 2;
const PAUSE_MS = 500;
const TOLD_LATE_MS = 1000; // the browser says what it has sent, but not at once
const OPEN = new Set(["Pending", "Processing"]);
let running = 0;
const waiting = [];

/** A card in `list`; `told` hears each state that a screen reader should, `changed` that a job has begun or ended, `closed` that the card was. */
export class Card {
  constructor(list, name, { told, changed, closed }) {
    this.name = name;
    this.told = told;
    this.changed = changed;
    this.closed = closed;
    this.jobId = null;
    this.showsMap = false;
    this.isCancelled = false;
    this.begun = null;
    this.share = 0;
    this.isLost = false; // whether what became of an upload was not told: a later refusal says nothing of that one
    this.abort = new AbortController();
    this.state = element("p", { className: "state" });
    this.bar = element("progress", { max: 1, "aria-label": name });
    this.actions = element("div", { className: "actions" });
    this.body = element("div", { className: "body" });
    this.title = element("h3", { tabIndex: -1 }, name);
    this.node = element("article", { className: "card", "aria-label": name }, element("div", { className: "head" }, element("div", {}, this.title, this.state), this.actions), this.bar, this.body);
    list.prepend(this.node);
  }

  /** Sends a file with `fields`, follows its job to the end and, if `showsMap`, asks for the preview of its result. */
  async convert({ content, name }, fields, showsMap) {
    this.showsMap = showsMap;
    this.offerCancel();
    this.busy(texts.queued);
    const idempotencyKey = newIdempotencyKey();
    const sent = (share) => {
      this.share = Math.max(share, this.share); // of an earlier attempt, too: the server may accept that one
      if (!this.isCancelled) this.busy(texts.uploading(share), share);
    };
    try {
      await turn(this.abort.signal);
      try {
        const file = await content();
        const send = () => {
          this.begun = performance.now();
          return upload(file, name, fields, idempotencyKey, sent, this.abort.signal);
        };
        const job = await patiently(send, (text, error) => this.paused(text, error), this.abort.signal);
        this.jobId = job.jobId;
      } finally {
        next();
      }
      if (this.isCancelled) await this.cancel();
      this.changed();
      await this.follow();
    } catch (error) {
      this.failed(error);
    }
  }

  /** Shows a job that an earlier visit has begun. */
  async show(job) {
    this.showsMap = true;
    this.jobId = job.jobId;
    if (OPEN.has(job.status)) this.offerCancel();
    try {
      await this.follow();
    } catch (error) {
      this.failed(error);
    }
  }

  async follow() {
    let job = { status: "Pending" };
    while (OPEN.has(job.status)) {
      if (!this.isCancelled) this.busy(texts.doing(job), job.progress?.share);
      const before = performance.now();
      job = await this.ask(`status?wait=${WAIT_SECONDS}`);
      if (OPEN.has(job.status) && performance.now() - before < PAUSE_MS) await pause(PAUSE_MS);
    }
    this.ended(job, await this.ask("result"));
    this.changed();
  }

  /** Asks for something of this job until the server responds. */
  ask(what) {
    return patiently(() => call(`convert/jobs/${this.jobId}/${what}`), (text, error) => this.paused(text, error), this.abort.signal);
  }

  /** Cancels the job. That of an upload which the server may have accepted has no name until the server responds. */
  async cancel() {
    this.isCancelled = true;
    this.busy(texts.cancelling);
    if (this.jobId) {
      await patiently(() => cancelJob(this.jobId), () => {}).catch((error) => this.failed(error));
      return;
    }
    if (this.begun !== null) await pause(TOLD_LATE_MS);
    if (!this.jobId && !this.mayBeAccepted()) this.abort.abort(new DOMException(texts.cancelled, "AbortError"));
  }

  /** Whether the server may have all of the file: at the speed until now, the rest takes no longer than it takes to be told. */
  mayBeAccepted() {
    if (this.begun === null) return false;
    return (performance.now() - this.begun) * (1 - this.share) < TOLD_LATE_MS * this.share;
  }

  offerCancel() {
    this.actions.replaceChildren(button(texts.cancel, () => this.cancel()));
  }

  paused(text, error) {
    if (!error.isBusy) this.isLost ||= this.share === 1;
    else if (!this.isLost) {
      this.begun = null;
      this.share = 0;
    }
    if (!this.isCancelled) this.busy(text);
  }

  busy(text, share) {
    this.state.textContent = text;
    this.state.className = "state busy";
    this.bar.hidden = false;
    if (share === undefined) this.bar.removeAttribute("value");
    else this.bar.value = share;
  }

  failed(error) {
    const isCancelled = error.name === "AbortError";
    const isUnknown = (this.jobId || this.share === 1) && !(error.status >= 400 && error.status < 500);
    this.settle("Failed", isCancelled ? texts.cancelled : isUnknown ? texts.outcomeUnknown : texts.Failed);
    if (!isCancelled) this.body.replaceChildren(element("p", { className: "error" }, error instanceof Refused ? error.message : String(error)));
    this.changed();
  }

  settle(status, text) {
    this.bar.hidden = true;
    this.state.textContent = text;
    this.state.className = `state ${status.toLowerCase()}`;
    const hadFocus = this.actions.contains(document.activeElement);
    this.actions.replaceChildren(button(texts.dismiss, () => this.close(), { className: "quiet" }));
    if (hadFocus) this.title.focus({ preventScroll: true }); // what had it is gone
    this.told(`${this.name}: ${text}`);
  }

  close() {
    this.node.remove();
    this.closed();
  }

  ended(job, result) {
    this.settle(job.status, this.isCancelled && job.status === "Failed" ? texts.cancelled : texts[job.status]);
    if (result.status !== "Completed") {
      this.refused(job, result);
      return;
    }
    this.actions.prepend(this.download(job), this.erase());
    const facts = [
      texts.became(result.inputFormat, result.outputFormat),
      result.featureCount === undefined ? null : texts.features(result.featureCount),
      result.geometryType === "None" ? null : result.geometryType,
      result.outputEpsg === null ? null : texts.epsg(result.outputEpsg),
      texts.seconds(result.processingTimeMs),
    ].filter(Boolean);
    const losses = result.truncationReport ? lossRows(result.truncationReport) : [];
    const lines = [element("ul", { className: "facts" }, ...facts.map((fact) => element("li", {}, fact)))];
    if (result.warnings.length)
      lines.push(
        element(
          "details",
          { open: result.warnings.length <= 3, className: "warnings" },
          element("summary", {}, texts.warnings(result.warnings.length)),
          element("ul", {}, ...result.warnings.map((warning) => element("li", {}, warning))),
          ...hints(result.warnings.join("\n")),
        ),
      );
    if (losses.length) lines.push(element("details", { open: losses.length <= 10 }, element("summary", {}, texts.losses), table(texts.losses, texts.lossColumns, losses)));
    if (!losses.length && !result.warnings.length) lines.push(element("p", { className: "hint good" }, texts.nothingLost));
    lines.push(this.view());
    this.body.replaceChildren(...lines);
  }

  refused(job, result) {
    const reason = result.error ?? job.errorMessage;
    const lines = [element("p", { className: "error" }, job.status === "Expired" ? texts.linkExpired : reason)];
    lines.push(...hints(reason));
    if (result.needsUpgrade) lines.push(element("p", { className: "hint" }, texts.upgrade));
    if (result.layers) lines.push(element("p", {}, `${texts.layersFound}:`), element("ul", {}, ...result.layers.map((one) => element("li", {}, `${one.layer}: ${texts.features(one.features)}`))));
    this.body.replaceChildren(...lines);
  }

  download(job) {
    return downloadLink(job, texts.downloadSize(job.outputSizeBytes), "button main", (message) => this.body.prepend(element("p", { className: "error", role: "alert" }, message)));
  }

  erase() {
    const act = async (event) => {
      const asked = event.currentTarget;
      if (asked.textContent !== texts.eraseSure) {
        asked.textContent = texts.eraseSure;
        return;
      }
      try {
        await call(`convert/jobs/${this.jobId}`, { method: "DELETE" });
        this.settle("Expired", texts.Expired);
        this.body.replaceChildren(element("p", { className: "hint" }, texts.erased));
        this.changed();
      } catch (error) {
        this.body.prepend(element("p", { className: "error", role: "alert" }, error.message));
      }
    };
    return button(texts.erase, act, { className: "quiet" });
  }

  view() {
    const place = element("div", {});
    const show = async () => {
      const hadFocus = open === document.activeElement;
      open.replaceWith(element("p", { className: "hint", role: "status" }, texts.loadingMap));
      if (hadFocus) this.title.focus({ preventScroll: true });
      try {
        const [{ preview }, text] = await Promise.all([
          import("./map.js"), // with all that only a map needs
          patiently(() => call(`convert/jobs/${this.jobId}/preview`, { read: (response) => response.text() }), () => {}),
        ]);
        await preview(place, this.name, text);
      } catch (error) {
        place.replaceChildren(element("p", { className: "error" }, error.message));
      }
    };
    const open = button(texts.showMap, show);
    place.append(open);
    if (this.showsMap) show();
    return place;
  }
}

/** Returns where in the form the fields are that a text of the server names, if it names any. */
function hints(text) {
  const named = fieldsNamed(text);
  return named.length ? [element("p", { className: "hint" }, texts.inTheForm(named))] : [];
}

/** Returns a link to a result, which gets a new address from the server once its own has expired. */
export function downloadLink(job, text, className, told) {
  let isFresh = false;
  const link = element("a", { href: job.downloadUrl, className, "aria-label": texts.downloadOf(job.originalFileName) }, text);
  link.addEventListener("click", async (event) => {
    // The clock here may be wrong: a link that was renewed just now is used whatever it says.
    if (isFresh || Date.now() < Date.parse(job.downloadExpiresAt)) return;
    event.preventDefault();
    try {
      const fresh = await call(`convert/jobs/${job.jobId}/status`);
      if (!fresh.downloadUrl) throw new Refused(texts.linkExpired, 410);
      link.href = fresh.downloadUrl;
      isFresh = true;
      link.click();
      isFresh = false;
    } catch (error) {
      told(error.message);
    }
  });
  return link;
}

/** Shows the newest jobs of this key in `place`; `details` opens one of them. */
export async function showHistory(place, details) {
  const { jobs } = await call("convert/jobs?limit=20");
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  if (!jobs.length) {
    place.replaceChildren(element("p", { className: "hint" }, texts.noHistory));
    return;
  }
  const when = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  place.replaceChildren(
    table(
      texts.history,
      texts.historyColumns,
      jobs.map((job) => {
        const problem = element("span", { className: "error", role: "alert" });
        const actions = [button(texts.details, () => details(job), { className: "link", "aria-label": texts.detailsOf(job.originalFileName) })];
        if (job.downloadUrl) actions.unshift(downloadLink(job, bytes(job.outputSizeBytes), "", (message) => (problem.textContent = message)), " ");
        return [
          element("span", { className: "name" }, job.originalFileName),
          element("span", { className: `badge ${job.status.toLowerCase()}` }, texts[job.status]),
          job.featureCount === undefined ? "" : texts.features(job.featureCount),
          when.format(new Date(job.createdAt)),
          element("span", { className: "cell-actions" }, ...actions, problem),
        ];
      }),
    ),
  );
  if (focused) [...place.querySelectorAll("a, button")].find((node) => node.getAttribute("aria-label") === focused)?.focus({ preventScroll: true });
}

/** Waits until fewer than `AT_ONCE` files are sent. */
async function turn(signal) {
  signal.throwIfAborted();
  if (running >= AT_ONCE) {
    await new Promise((resolve, reject) => {
      waiting.push(resolve);
      signal.addEventListener("abort", () => {
        const at = waiting.indexOf(resolve);
        if (at >= 0) waiting.splice(at, 1);
        reject(signal.reason);
      });
    });
  } else running += 1;
}

function next() {
  if (waiting.length) waiting.shift()();
  else running -= 1;
}
