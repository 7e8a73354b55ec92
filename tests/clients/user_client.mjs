// @ttab/api-client with its answers checked by its own types, and its errors by their whole body.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Api, ApiError } from '@ttab/api-client';
import { client, given, TOKEN_VALIDITY_S } from './common.mjs';
import { conform, methodsOf, typeOf } from './types.mjs';

// The library's default of 2 s would count a busy machine as a fault of the server.
const TIMEOUT_MS = 60_000;

/** The methods that the library declares, with the types of their answers. */
export const declared = methodsOf('UserV1');

/** The names of the methods that have returned a response of their type. */
export const called = new Set();

// The library's own axios, to see the whole body of an error, of which ApiError keeps the message.
const library = createRequire(import.meta.url).resolve('@ttab/api-client');
let refusal = null;
createRequire(library)('axios').interceptors.response.use(undefined, (error) => {
    refusal = error.response;
    return Promise.reject(error);
});

/** The library's user API with `token`; its responses are checked against the declared type. */
export function apiWith(token) {
    const target = new Api({ host: given.base, token, timeout: TIMEOUT_MS }).user;
    const call = (name) => async (...values) => {
        const answer = await target[name](...values);
        conform(declared.get(name), answer, name);
        called.add(name);
        return answer;
    };
    return Object.fromEntries([...declared.keys()].map((name) => [name, call(name)]));
}

/** The password grant (contract login-2). */
export async function tokenOf(account, scope) {
    const { client_id, client_secret } = client('suite-post');
    const { userName: username, password } = account;
    const form = { grant_type: 'password', username, password, client_id, client_secret, scope };
    const body = new URLSearchParams(form);
    const answer = await fetch(`${given.base}/o/oauth2/token`, { method: 'POST', body });
    assert.match(answer.headers.get('cache-control') ?? '', /no-store/);
    const tokens = await answer.json();
    assert.equal(answer.status, 200, JSON.stringify(tokens));
    assert.equal(tokens.token_type, 'Bearer');
    assert.equal(tokens.expires_in, TOKEN_VALIDITY_S);
    assert.match(tokens.id_token, /^[\w-]+\.[\w-]+\.[\w-]+$/);
    assert(tokens.access_token && tokens.refresh_token && !tokens.access_token.includes('.'));
    return tokens.access_token;
}

/**
 * `call` ends in an ApiError with `message`, and one of the body's errors has `code` at `path`.
 * Returns the response that the library received.
 */
export async function refused(call, status, { message, code, location, path } = {}) {
    const answered = (answer) => assert.fail(`answered ${JSON.stringify(answer)}`);
    const error = await call.then(answered, (thrown) => thrown);
    assert(error instanceof ApiError, String(error));
    const body = JSON.stringify(refusal.data);
    assert.equal(error.statusCode, status, body);
    assert(message ? error.message === message : error.message.length > 8, body);
    assert.match(refusal.headers['content-type'], /^application\/json/);
    assert.deepEqual(Object.keys(refusal.data).sort(), ['errors', 'message']);
    conform(typeOf('errors'), { errors: refusal.data.errors }, 'error');
    const fits = (entry) => (!code || entry.errorCode === code)
        && (!location || entry.location === location)
        && (!path || entry.path?.split(/[./]/).at(-1) === path);
    assert(refusal.data.errors.some(fits) || !(code || location || path), `${code}: ${body}`);
    return refusal;
}

/** `call` fails validation by `rule` at `path`. */
export function invalid(call, rule, location, path) {
    const code = `${rule}.openapi.requestValidation`;
    return refused(call, 400, { message: 'Request validation failed', code, location, path });
}

/** Reads the media URL `path` to its end; `json` is the body when it is JSON. */
export async function download(token, path) {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${given.base}${path}`, { headers });
    const type = answer.headers.get('content-type');
    const body = Buffer.from(await answer.arrayBuffer());
    const json = type?.startsWith('application/json') ? JSON.parse(body) : null;
    return { status: answer.status, type, json, size: body.length };
}
