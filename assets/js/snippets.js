// A call of an API as a program would write it: curl in a shell, JavaScript, Python.
// `src/http/site/snippets.rs` writes the same on the server; a test holds both to the same text.

const HIDDEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;
const ESCAPES = { '\\': '\\\\', "'": "\\'", '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const SHELL_ESCAPES = { '\\': '\\\\', "'": "\\'", '\n': '\\n', '\t': '\\t', '!': '\\x21' };

const bytes = text => [...new TextEncoder().encode(text)];
const hex = (number, digits) => number.toString(16).padStart(digits, '0');

function shell(text) {
  if (![...text].some(c => HIDDEN.test(c) && c !== '\n' && c !== '\t')) {
    return `'${text.replaceAll("'", "'\\''")}'`;
  }
  const escaped = c => SHELL_ESCAPES[c]
    ?? (HIDDEN.test(c) ? bytes(c).map(byte => `\\x${hex(byte, 2)}`).join('') : c);
  return `$'${[...text].map(escaped).join('')}'`;
}

function quoted(text) {
  const escaped = c => ESCAPES[c] ?? (HIDDEN.test(c) ? `\\u${hex(c.codePointAt(0), 4)}` : c);
  return `'${[...text].map(escaped).join('')}'`;
}

function headers({ authorization, kind }) {
  const all = [['Authorization', authorization], ['Content-Type', kind]];
  return all.filter(([, value]) => value != null);
}

const entries = (call, indent) =>
  headers(call).map(([name, value]) => `${indent}${quoted(name)}: ${quoted(value)},\n`).join('');

function curl(call) {
  const words = ['curl'];
  if (/[[\]{}]/.test(call.url)) words.push('--globoff');
  if (call.method !== 'GET') words.push(`-X ${call.method}`);
  words.push(shell(call.url));
  const lines = [words.join(' ')];
  for (const [name, value] of headers(call)) lines.push(`-H ${shell(`${name}: ${value}`)}`);
  if (call.body != null) lines.push(`--data-raw ${shell(call.body)}`);
  if (call.file != null) lines.push(`--output ${shell(call.file)}`);
  return lines.join(' \\\n  ');
}

function javascript(call) {
  let options = '';
  if (call.method !== 'GET') options += `  method: ${quoted(call.method)},\n`;
  const given = entries(call, '    ');
  if (given) options += `  headers: {\n${given}  },\n`;
  if (call.body != null) options += `  body: ${quoted(call.body)},\n`;
  if (options) options = `, {\n${options}}`;
  const made = `const response = await fetch(${quoted(call.url)}${options});\n`;
  if (call.file == null) return `${made}console.log(await response.text());`;
  const write = `await writeFile(${quoted(call.file)}, new Uint8Array(await response.arrayBuffer()));`;
  return `import { writeFile } from 'node:fs/promises';\n\n${made}${write}`;
}

function python(call) {
  let given = `    ${quoted(call.url)},\n`;
  if (call.method !== 'GET') given += `    method=${quoted(call.method)},\n`;
  const own = entries(call, '        ');
  if (own) given += `    headers={\n${own}    },\n`;
  if (call.body != null) given += `    data=${quoted(call.body)}.encode(),\n`;
  const read = call.file == null
    ? '    print(response.read().decode())'
    : `    with open(${quoted(call.file)}, 'wb') as file:\n        file.write(response.read())`;
  return `import urllib.request\n\nrequest = urllib.request.Request(\n${given})\n`
    + `with urllib.request.urlopen(request) as response:\n${read}`;
}

// { method, url, authorization, kind, body, file }: what is not there is null.
export function snippets(call) {
  return { curl: curl(call), javascript: javascript(call), python: python(call) };
}

function segment(text) {
  const isDots = text === '.' || text === '..';
  const encoded = byte => {
    const c = String.fromCharCode(byte);
    return !isDots && /[A-Za-z0-9\-_.~:@]/.test(c) ? c : `%${hex(byte, 2).toUpperCase()}`;
  };
  return bytes(text).map(encoded).join('');
}

// Path and query of a call: each `{name}` of `path` with its value, the parameters that have one.
export function target(path, values, query) {
  const own = new Map(values);
  const filled = path.replace(/\{([^}]*)\}/g, (name, key) => own.get(key) ? segment(own.get(key)) : name);
  const encoded = new URLSearchParams(query.filter(([, value]) => value !== '')).toString();
  return encoded ? `${filled}?${encoded}` : filled;
}

// The name of the file that the answer of a call goes into.
export function fileName(target) {
  const end = target.split('?')[0].split('/').at(-1);
  return end.replace(/[^A-Za-z0-9._-]/g, '').replace(/^[.-]+/, '') || 'answer';
}
