// The forms that try operations out: they send what is typed, show what comes back, and write the
// same call as code.

import { addCopyButtons } from './panels.js';
import { fileName, snippets, target } from './snippets.js';

const SHOWN_MAX = 200_000;
const KEY = 'YOUR_KEY';

// JSON with an indent. Its numbers and strings stay as they came.
function indented(text) {
  JSON.parse(text);
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g) ?? [];
  const parts = [];
  let depth = 0;
  tokens.forEach((token, at) => {
    const line = () => parts.push('\n', '  '.repeat(depth));
    if (token === '{' || token === '[') {
      depth += 1;
      parts.push(token);
      if (!/[}\]]/.test(tokens[at + 1][0])) line();
    } else if (token === '}' || token === ']') {
      depth -= 1;
      if (!['{', '['].includes(tokens[at - 1])) line();
      parts.push(token);
    } else if (token === ',') {
      parts.push(token);
      line();
    } else {
      parts.push(token === ':' ? ': ' : token);
    }
  });
  return parts.join('');
}

const fill = (text, ...values) => values.reduce((filled, value) => filled.replace('{}', () => value), text);

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

// What the form says now: path and query, the body, whether a part of the path is missing.
function typed(form) {
  const { path, ak } = form.dataset;
  const fields = [...form.elements].filter(field => field.name);
  const of = place => fields.filter(field => field.name.startsWith(`${place}.`))
    .map(field => [field.name.slice(place.length + 1), field.value]);
  const query = of('query');
  if (ak !== undefined) query.push(['ak', KEY]);
  const body = form.elements.namedItem('body')?.value || null;
  const isWhole = of('path').every(([, value]) => value !== '');
  return { address: target(path, of('path'), query), body, isWhole };
}

function show(trial) {
  const form = trial.querySelector('form');
  const { method, base, authorization, kind, file } = form.dataset;
  const { address, body, isWhole } = typed(form);
  const code = snippets({
    method,
    url: base + address,
    authorization: authorization ?? null,
    kind: body === null ? null : kind,
    body,
    file: file === undefined ? null : fileName(address),
  });
  for (const pre of trial.querySelectorAll('.panels pre')) {
    const place = pre.querySelector('code');
    const text = code[pre.dataset.language];
    if (place.textContent !== text) place.textContent = text;
  }
  const link = trial.querySelector('.answer-link');
  if (link) {
    link.href = base + address;
    link.hidden = !isWhole;
  }
}

function showAnswer(trial, { response, bytes, time, address }) {
  const [status, result] = [trial.querySelector('.sent'), trial.querySelector('.result')];
  const { as, csrf, method } = trial.querySelector('form').dataset;
  const who = csrf ? fill(status.dataset.as, as) : status.dataset.stranger;
  const line = `${response.status} ${response.statusText}`.trim();
  const more = ` · ${Math.round(time)} ms · ${bytes.byteLength} bytes · ${who}`;
  status.replaceChildren(element('span', response.ok ? 'good' : 'bad', line), element('span', 'more', more));
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`);
  result.querySelector('.headers').textContent = headers.join('\n');
  const kind = (response.headers.get('content-type') ?? '').split(';')[0].trim();
  const [about, answer] = [result.querySelector('.about'), result.querySelector('.answer')];
  const isText = /^text\/|json$|xml$/.test(kind);
  let text = isText ? new TextDecoder().decode(bytes) : '';
  const said = [];
  if (bytes.byteLength === 0) said.push(status.dataset.empty);
  else if (!isText) said.push(fill(status.dataset.bytes, kind, bytes.byteLength));
  if (/json$/.test(kind)) {
    try {
      text = indented(text);
    } catch {
      // Then it is shown as it came.
    }
  }
  if (text.length > SHOWN_MAX) said.push(fill(status.dataset.cut, SHOWN_MAX));
  about.replaceChildren(said.join(' '));
  if (!isText && bytes.byteLength > 0 && method === 'GET') {
    const link = element('a', '', address);
    link.href = address;
    link.target = '_blank';
    about.append(' ', link);
  }
  about.hidden = said.length === 0;
  answer.textContent = text.slice(0, SHOWN_MAX);
  answer.hidden = text === '';
  answer.scrollTop = 0;
  result.hidden = false;
}

const running = new WeakMap();

async function send(trial) {
  const form = trial.querySelector('form');
  const { method, kind, csrf } = form.dataset;
  const { address, body } = typed(form);
  const [status, result] = [trial.querySelector('.sent'), trial.querySelector('.result')];
  running.get(trial)?.abort();
  const controller = new AbortController();
  running.set(trial, controller);
  status.replaceChildren(status.dataset.waiting);
  result.hidden = true;
  const headers = {};
  if (csrf) headers.Authorization = `Session ${csrf}`;
  if (body !== null) headers['Content-Type'] = kind;
  const options = { method, headers, body, cache: 'no-store', signal: controller.signal };
  options.credentials = csrf ? 'same-origin' : 'omit';
  const start = performance.now();
  try {
    const response = await fetch(address, options);
    const bytes = await response.arrayBuffer();
    showAnswer(trial, { response, bytes, time: performance.now() - start, address });
  } catch (error) {
    // Another one was sent in its place.
    if (controller.signal.aborted) return;
    status.replaceChildren(element('span', 'bad', status.dataset.failed), element('span', 'more', ` ${error.message}`));
  }
}

function start(trial) {
  const form = trial.querySelector('form');
  const act = form.querySelector('.act');
  act.querySelector('button')?.remove();
  if (form.dataset.send) {
    const button = element('button', 'button', form.dataset.send);
    button.type = 'submit';
    act.prepend(button, ' ');
  } else {
    act.replaceChildren();
  }
  form.addEventListener('input', () => show(trial));
  form.addEventListener('submit', event => {
    event.preventDefault();
    if (form.dataset.send) send(trial);
  });
  show(trial);
}

// A form comes into the documentation when it is opened.
async function load(details) {
  const link = details.querySelector('a');
  try {
    const response = await fetch(link.href);
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const trial = document.adoptNode(page.querySelector('.trial'));
    link.closest('p').replaceWith(trial);
    addCopyButtons(trial);
    start(trial);
  } catch {
    // The link is still there.
  }
}

document.querySelectorAll('.trial').forEach(start);
for (const details of document.querySelectorAll('details.try')) {
  details.addEventListener('toggle', () => load(details), { once: true });
}
