// The HTTP API as this page uses it. Whatever comes back is data: nothing of it is ever made into HTML.

const KEY = "pagefleet-key";
const WAIT_S = 2;
const MOST_WAITS = 120;
const ACCEPTED = 202;
const FULL = new Set(["too_many_images", "too_many_open_exports"]);

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.code = body.code || "";
    const cause = body.page_error || body.document_error;
    if (cause) this.message += ` ${cause.message}`;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

export const sleep = (seconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, seconds * 1000);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
});

const secondsIn = (header) => Number.parseInt(header, 10) || WAIT_S;

/** What is told of a pause that the server asks for, and, with null, of its end. */
export const pause = { tell: () => {} };

async function ask(path, { method = "GET", signal } = {}) {
  for (let waits = 0; ; waits += 1) {
    const answer = await fetch(path, {
      method, signal, headers: { Authorization: `Bearer ${key.get()}` }, cache: "no-cache",
    });
    if (waits) pause.tell(null);
    if (answer.ok) return answer;
    const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
    // Refused is not done, so that anything may be asked for again.
    if (problem.code !== "too_many_requests" || waits === MOST_WAITS) throw problem;
    const seconds = secondsIn(answer.headers.get("Retry-After"));
    pause.tell(`${problem.message} This page goes on in ${seconds} s.`);
    await sleep(seconds, signal);
  }
}

export const read = async (path, options) => (await ask(path, options)).json();

export const act = (path, method, signal) => ask(path, { method, signal });

/** Return an answer; null while there is no room for what was asked for. */
async function askForRoom(path, signal) {
  try {
    return await ask(path, { signal });
  } catch (error) {
    if (FULL.has(error.code)) return null;
    throw error;
  }
}

/** Return an answer; while the server says that it is still being made, ask again. */
async function whenMade(path, signal, reason) {
  for (let waits = 0; waits < MOST_WAITS; waits += 1) {
    const answer = await askForRoom(path, signal);
    if (answer && answer.status !== ACCEPTED) return answer;
    await sleep(answer ? secondsIn(answer.headers.get("Retry-After")) : WAIT_S, signal);
  }
  throw new Problem(504, { detail: reason });
}

/** Return the image of a page as a Blob; it is drawn when it is first asked for. */
export async function pageImage(documentId, number, signal) {
  const path = `/v1/documents/${documentId}/pages/${number}/image`;
  return (await whenMade(path, signal, "The page was not drawn. Do workers for splitting run?")).blob();
}

/** Save a result as a file, under the name that the server gives it. */
export async function save(path, signal) {
  const answer = await whenMade(path, signal, "The file was not made. Do workers for exports run?");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = nameIn(answer.headers.get("Content-Disposition") || "");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const nameIn = (disposition) => {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition);
  if (encoded) return decodeURIComponent(encoded[1]);
  return /filename="([^"]*)"/i.exec(disposition)?.[1] || "result";
};

const randomName = () => [...crypto.getRandomValues(new Uint8Array(16))]
  .map((byte) => byte.toString(16).padStart(2, "0")).join("");

function sendOnce(file, password, name, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const form = new FormData();
    if (password) form.append("password", password);
    form.append("file", file);
    request.open("POST", "/v1/documents");
    request.setRequestHeader("Authorization", `Bearer ${key.get()}`);
    request.setRequestHeader("Idempotency-Key", name);
    request.responseType = "json";
    request.upload.onprogress = (event) => onProgress(event.loaded / (event.total || 1));
    request.onload = () => resolve(request);
    request.onerror = () => reject(new Problem(0, { detail: "The connection was lost. Send it again." }));
    request.send(form);
  });
}

/** Send a file, and return its document; waits while the server has no room, and never sends it twice. */
export async function upload(file, password, { onProgress, onWait }) {
  const name = randomName();
  for (let waits = 0; ; waits += 1) {
    const request = await sendOnce(file, password, name, onProgress);
    if (request.status < 300) return request.response;
    const problem = new Problem(request.status, request.response || {});
    if (![429, 503].includes(request.status) || waits === MOST_WAITS) throw problem;
    onWait(problem.message);
    await sleep(secondsIn(request.getResponseHeader("Retry-After")));
  }
}
