// Shared by the Node scripts: their argument, the accounts, and small checks.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The script's only argument, a JSON object; `accounts` may name another accounts file. */
export const given = JSON.parse(process.argv[2] ?? '{}');
assert.match(given.base ?? '', /^https?:\/\/[^/]+$/, 'argument {"base": "http://host:port"}');

/** How long an access token lasts (contract login-2). */
export const TOKEN_VALIDITY_S = 7 * 24 * 60 * 60;

/** The accounts file that the server was given; expected values and secrets come from it. */
export const accounts = JSON.parse(
    readFileSync(given.accounts ?? new URL('accounts.json', import.meta.url), 'utf8'),
);

export const user = (name) => one(accounts.users, (row) => row.userName === name);
export const client = (id) => one(accounts.clients, (row) => row.client_id === id);
export const organization = (id) => one(accounts.organizations, (row) => row.id === id);

/** The one element of `list` that `test` picks; fails when there is none or more. */
export function one(list, test) {
    const found = list.filter(test);
    assert.equal(found.length, 1, `${found.length} found by ${test}`);
    return found[0];
}

/** The `at_hash` that belongs to `token` under RS256 (OpenID Connect Core, 3.1.3.6). */
export function halfHash(token) {
    return createHash('sha256').update(token).digest().subarray(0, 16).toString('base64url');
}

/** Prints the one line that summarizes the results. */
export function report(seen) {
    console.log(JSON.stringify(seen));
}
