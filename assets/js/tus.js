// Sends a file in parts with the protocol tus 1.0.0 (https://tus.io/protocols/resumable-upload), and
// continues where an interruption left it: after a lost connection, after a restart of the server, and
// on another day. Nothing of the page.

const VERSION = '1.0.0';
const PART_BYTES = 8 * 1024 * 1024;

/** Attempts in a row that send nothing, before the upload is given up. */
const TRIES_MAX = 9;
const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 30_000;

/** What the server answered instead of taking the file. `status` 0: it was not reached. */
export class UploadRefused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Statuses after which the same request may succeed: a busy server, one that restarts, a part that
 *  was damaged on its way. */
const PASSING = new Set([0, 408, 425, 429, 460, 500, 502, 503, 504]);

/** Sends a request. The answer of a server that is not reached has the status 0. `fetch` cannot tell how
 *  much of a body was sent. */
function request(method, url, { headers, body = null, signal, onSent }) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const call = new XMLHttpRequest();
    const stop = () => {
      call.abort();
      reject(signal.reason);
    };
    const end = () => {
      signal.removeEventListener('abort', stop);
      resolve(call);
    };
    call.open(method, url);
    for (const [name, value] of Object.entries({ 'Tus-Resumable': VERSION, ...headers })) {
      call.setRequestHeader(name, value);
    }
    if (onSent) call.upload.addEventListener('progress', event => onSent(event.loaded));
    call.addEventListener('load', end);
    call.addEventListener('error', end);
    call.addEventListener('timeout', end);
    signal.addEventListener('abort', stop, { once: true });
    call.send(body);
  });
}

const isDone = call => call.status >= 200 && call.status < 300;

function refusal(call) {
  let answer = {};
  try {
    answer = JSON.parse(call.responseText);
  } catch {
    // A proxy answers in its own words.
  }
  const code = answer.errors?.[0]?.errorCode ?? answer.errorCode ?? '';
  return new UploadRefused(call.status, code, answer.message ?? '');
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** Waits, at most until the network is back. */
function wait(ms, signal) {
  return new Promise((resolve, reject) => {
    const end = outcome => {
      clearTimeout(timer);
      removeEventListener('online', go);
      signal.removeEventListener('abort', stop);
      outcome();
    };
    const go = () => end(resolve);
    const stop = () => end(() => reject(signal.reason));
    const timer = setTimeout(go, ms);
    addEventListener('online', go);
    signal.addEventListener('abort', stop);
  });
}

/** Seconds that the server asks to wait, in milliseconds. */
function askedWait(call) {
  const seconds = Number(call.getResponseHeader('Retry-After') ?? 0);
  return Number.isFinite(seconds) ? Math.max(0, seconds * 1000) : 0;
}

/** A text by which the same file is recognized on another day. */
export function fingerprintOf(file) {
  return [file.name, file.size, file.lastModified].join(' ');
}

async function create({ endpoint, file, headers, signal }) {
  const metadata = `filename ${base64(file.name)},fingerprint ${base64(fingerprintOf(file))}`;
  const call = await request('POST', endpoint, {
    headers: { ...headers, 'Upload-Length': file.size, 'Upload-Metadata': metadata },
    signal,
  });
  return { call, address: call.getResponseHeader('Location') };
}

/** How much of an upload the server has. */
async function findOffset(address, { headers, signal }) {
  const call = await request('HEAD', address, { headers, signal });
  return { call, offset: Number(call.getResponseHeader('Upload-Offset') ?? NaN) };
}

async function sendPart(address, offset, { file, headers, signal, onProgress }) {
  const call = await request('PATCH', address, {
    headers: {
      ...headers,
      'Content-Type': 'application/offset+octet-stream',
      'Upload-Offset': offset,
    },
    body: file.slice(offset, offset + PART_BYTES),
    signal,
    onSent: loaded => onProgress(Math.min(offset + loaded, file.size)),
  });
  return { call, offset: Number(call.getResponseHeader('Upload-Offset') ?? NaN) };
}

/** Sends `file` to `endpoint`, or the rest of it to `address`, which may have expired.
 *
 *  Calls `onCreated(address)`, `onProgress(bytes)` and `onRetry()`. Fails with `UploadRefused`, or with the
 *  reason of `signal`. */
export async function sendFile({ address = null, onCreated, onRetry, ...upload }) {
  const { file, signal, onProgress } = upload;
  let offset = null;
  // What the server had when it was last known, also after parts that were cut off.
  let known = 0;
  let failures = 0;
  for (;;) {
    let call;
    if (address === null) {
      ({ call, address } = await create(upload));
      if (isDone(call) && address) {
        offset = 0;
        onCreated(address);
      } else {
        address = null;
      }
    } else if (offset === null) {
      ({ call, offset } = await findOffset(address, upload));
      if (!isDone(call) || !Number.isFinite(offset)) offset = null;
    } else {
      const sent = await sendPart(address, offset, upload);
      ({ call } = sent);
      offset = isDone(call) && Number.isFinite(sent.offset) ? sent.offset : null;
    }
    if (offset !== null) {
      if (offset > known) failures = 0;
      known = offset;
      onProgress(offset);
      if (offset >= file.size) return;
    }
    if (offset !== null) continue;
    const { status } = call;
    const isGone = address !== null && (status === 404 || status === 410);
    // 409: another page sent a part, so the offset is asked for.
    const isPassing = isDone(call) || isGone || status === 409 || PASSING.has(status);
    failures += 1;
    if (!isPassing || failures >= TRIES_MAX) throw refusal(call);
    // It has expired or was discarded, and begins again.
    if (isGone) address = null;
    if (isGone || status === 409) continue;
    onRetry();
    const backoff = Math.min(WAIT_MAX_MS, WAIT_MIN_MS * 2 ** (failures - 1));
    // Many files that were interrupted together do not come back at the same moment.
    await wait(Math.max(askedWait(call), backoff * (0.75 + Math.random() / 2)), signal);
  }
}
