// Uploads: files are chosen or dropped anywhere on the page, sent a few at a time, and continue after an
// interruption. The list holds what the server has; a file that is chosen again continues its row.

import { UploadRefused, fingerprintOf, sendFile } from './tus.js';

const zone = document.querySelector('[data-upload]');
const input = document.querySelector('#files');
const list = document.querySelector('#uploads');
const template = document.querySelector('#upload-row');
const status = document.querySelector('#upload-status');
const { csrf, endpoint, ...texts } = zone.dataset;
const parallel = Number(texts.parallel);
const bytesMax = Number(texts.bytesMax);
const extensions = input.accept.split(',');
const headers = { Authorization: `Session ${csrf}` };

/** Files of a dropped folder that are taken. */
const FOLDER_FILES_MAX = 1000;

/** Rows with a file of this page: `{ file, stop }`. */
const jobs = new Map();
const queue = [];
let active = 0;

const part = (row, name) => row.querySelector(`.${name}`);
const isComplete = row => row.dataset.complete === 'yes';

function say(row, state, text) {
  row.dataset.state = state;
  part(row, 'state').textContent = text;
  part(row, 'again').hidden = state !== 'failed';
}

function sizeText(bytes) {
  const [unit, size, digits] = bytes < 100_000 ? ['kB', 1000, 0] : ['MB', 1_000_000, 1];
  const number = Math.ceil((bytes / size) * 10 ** digits) / 10 ** digits;
  return `${number.toLocaleString(document.documentElement.lang, { minimumFractionDigits: digits })} ${unit}`;
}

/** Shows how many files are ready, and what can be done with them. */
function count() {
  const rows = [...list.children];
  const ready = rows.filter(isComplete).length;
  document.querySelector('#publish-act').hidden = ready === 0;
  document.querySelector('#no-uploads').hidden = rows.length > 0;
  return texts.announce.replace('{ready}', ready).replace('{all}', rows.length);
}

function progress(row, bytes) {
  part(row, 'sent').value = bytes;
}

function name(row, text) {
  part(row, 'name').textContent = text;
  part(row, 'sent').setAttribute('aria-label', text);
  for (const label of row.querySelectorAll('.of')) label.textContent = ` ${text}`;
}

function add(file) {
  const row = template.content.firstElementChild.cloneNode(true);
  name(row, file.name);
  row.dataset.fingerprint = fingerprintOf(file);
  part(row, 'bytes').textContent = sizeText(file.size);
  part(row, 'sent').max = Math.max(1, file.size);
  list.append(row);
  return row;
}

/** The reason why a file is not even sent; nothing when it can be. */
function objection(file) {
  const isKnown = extensions.some(extension => file.name.toLowerCase().endsWith(extension));
  if (!isKnown || file.size === 0) return texts.unknown;
  return file.size > bytesMax ? texts.tooLarge : null;
}

/** Why the server refused a file, in words of the page. */
function reason({ status: code, code: word }) {
  if (code === 401) return texts.login;
  if (code === 403) return texts.forbidden;
  if (word.startsWith('upload_quota')) return texts.quota;
  if (word.startsWith('upload_space')) return texts.space;
  if (code === 413) return texts.tooLarge;
  return code === 400 ? texts.refused : texts.failed;
}

async function send(row) {
  const { file, stop } = jobs.get(row);
  say(row, 'sending', texts.sending);
  try {
    await sendFile({
      file,
      endpoint,
      headers,
      signal: stop.signal,
      address: row.dataset.id ? `${endpoint}/${row.dataset.id}` : null,
      onCreated(address) {
        row.dataset.id = address.split('/').pop();
        row.querySelector('input').value = row.dataset.id;
      },
      onProgress(bytes) {
        progress(row, bytes);
        if (row.dataset.state !== 'sending') say(row, 'sending', texts.sending);
      },
      onRetry: () => say(row, 'retrying', texts.retrying),
    });
    row.dataset.complete = 'yes';
    Object.assign(row.querySelector('input'), { disabled: false, checked: true });
    say(row, 'ready', texts.ready);
    jobs.delete(row);
    status.textContent = count();
  } catch (cause) {
    // A discarded row is gone already.
    if (stop.signal.aborted) return;
    const text = cause instanceof UploadRefused ? reason(cause) : texts.failed;
    say(row, 'failed', text);
    status.textContent = `${file.name}: ${text}`;
  }
}

function start() {
  while (active < parallel && queue.length > 0) {
    const row = queue.shift();
    active += 1;
    send(row).finally(() => {
      active -= 1;
      start();
    });
  }
}

function enqueue(row, file) {
  jobs.set(row, { file, stop: new AbortController() });
  say(row, 'waiting', texts.waiting);
  queue.push(row);
}

/** Takes files, each once: one that was interrupted continues. */
function take(files) {
  let same = '';
  for (const file of files) {
    const known = [...list.children].find(row => row.dataset.fingerprint === fingerprintOf(file));
    const row = known ?? add(file);
    const wrong = objection(file);
    if (wrong) say(row, 'refused', wrong);
    else if (known && (isComplete(row) || (jobs.has(row) && row.dataset.state !== 'failed'))) same = file.name;
    else enqueue(row, file);
  }
  const counted = count();
  status.textContent = same ? `${same}: ${texts.same}` : counted;
  start();
}

/** The files of a dropped entry: itself, or what a folder holds. */
async function filesOf(entry, found) {
  if (found.length >= FOLDER_FILES_MAX) return;
  if (entry.isFile) {
    found.push(await new Promise((resolve, reject) => { entry.file(resolve, reject); }));
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const entries = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
    if (entries.length === 0) return;
    // Files of the system, such as `.DS_Store`, are no pictures.
    for (const one of entries.filter(own => !own.name.startsWith('.'))) await filesOf(one, found);
  }
}

async function dropped(transfer) {
  // Both are empty once the event is over.
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
  const files = [...transfer.files];
  if (!entries.some(entry => entry.isDirectory)) return files;
  const found = [];
  for (const entry of entries) await filesOf(entry, found);
  return found;
}

async function discard(row) {
  const job = jobs.get(row);
  job?.stop.abort();
  jobs.delete(row);
  if (queue.includes(row)) queue.splice(queue.indexOf(row), 1);
  if (row.dataset.id) {
    const address = `${endpoint}/${row.dataset.id}`;
    const answer = await fetch(address, { method: 'DELETE', headers }).catch(() => null);
    if (!answer?.ok && answer?.status !== 404) {
      say(row, 'failed', answer?.status === 401 ? texts.login : texts.failed);
      // Without its file the row cannot be tried again here.
      part(row, 'again').hidden = true;
      return;
    }
  }
  const next = row.nextElementSibling ?? row.previousElementSibling;
  row.remove();
  status.textContent = count();
  (next ? part(next, 'discard') : input).focus();
}

const carriesFiles = event => [...(event.dataTransfer?.types ?? [])].includes('Files');

zone.hidden = false;
input.addEventListener('change', () => {
  take([...input.files]);
  // The same file can be chosen again.
  input.value = '';
});
// A file that misses the zone would replace the page.
addEventListener('dragover', event => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = 'copy';
  zone.classList.add('over');
});
addEventListener('dragleave', event => {
  if (event.relatedTarget === null) zone.classList.remove('over');
});
addEventListener('drop', event => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  zone.classList.remove('over');
  dropped(event.dataTransfer).then(take, () => { status.textContent = texts.failed; });
});
list.addEventListener('click', event => {
  const button = event.target.closest('button');
  const row = button?.closest('li');
  if (!row) return;
  event.preventDefault();
  if (button.classList.contains('discard')) {
    discard(row);
  } else {
    enqueue(row, jobs.get(row).file);
    start();
  }
});
addEventListener('beforeunload', event => {
  if (active > 0) event.preventDefault();
});
