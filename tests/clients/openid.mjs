// Signs in through openid-client: discovery; the code flow with PKCE, state and nonce for each way
// in which a client authenticates; implicit flow; refresh, revocation, userinfo; what is refused.
//
//   node openid.mjs '{"base": "http://127.0.0.1:8080"}'
//
// The server has imported accounts.json, and its public URL is `base`. Can be run repeatedly.
import assert from 'node:assert/strict';
import { webcrypto } from 'node:crypto';
import * as openid from 'openid-client';
import { Browser } from './browser.mjs';
import {
    client, given, halfHash, organization, report, TOKEN_VALIDITY_S, user,
} from './common.mjs';

// openid-client expects these as globals, which they are from Node 20 on.
globalThis.crypto ??= webcrypto;
globalThis.CryptoKey ??= webcrypto.CryptoKey;

const EVERYTHING = 'openid email roles user customer profile collection';
const AUTHENTICATIONS = ['client_secret_basic', 'client_secret_post', 'none'];
const NO_CHALLENGE = { code_challenge: undefined, code_challenge_method: undefined };
const editor = user('suite-editor');
const { userName: username, password } = editor;
const redirect = client('suite-basic').redirect_uris[0];

/** The configuration that the library discovers from the server, for client `id`. */
function discover(id, authentication, ...features) {
    const execute = [openid.allowInsecureRequests, ...features];
    const server = new URL(given.base);
    return openid.discovery(server, id, undefined, authentication, { execute });
}

/** Sends `browser` to the authorization endpoint and brings it back. */
async function ask(config, browser, { decision, ...changes } = {}) {
    const [state, nonce] = [openid.randomState(), openid.randomNonce()];
    const verifier = openid.randomPKCECodeVerifier();
    const all = {
        redirect_uri: redirect, scope: EVERYTHING, state, nonce, code_challenge_method: 'S256',
        code_challenge: await openid.calculatePKCECodeChallenge(verifier), ...changes,
    };
    const sent = Object.entries(all).filter(([, value]) => value !== undefined);
    const start = openid.buildAuthorizationUrl(config, new URLSearchParams(sent));
    const came = await browser.authorize(start, { redirect, username, password, decision });
    return { ...came, state, nonce, verifier };
}

/** Exchanges the code. The library checks `iss`, `state`, `nonce`, `aud`, `exp` and signature. */
function exchange(config, { callback, state, nonce, verifier }) {
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
    return openid.authorizationCodeGrant(config, callback, { ...checks, idTokenExpected: true });
}

/** Checks a token set beyond what the library does, and that the access token works. */
async function checkTokens(config, tokens, scope = EVERYTHING) {
    const claims = tokens.claims();
    assert.deepEqual([tokens.token_type, tokens.expires_in], ['bearer', TOKEN_VALIDITY_S]);
    assert.equal(claims.at_hash, halfHash(tokens.access_token));
    const seen = await openid.fetchUserInfo(config, tokens.access_token, claims.sub);
    for (const granted of [tokens.scope ?? scope, seen.scope]) {
        assert.deepEqual(granted.split(' ').sort(), scope.split(' ').sort());
    }
    return seen;
}

/** The access token `token` is no longer accepted. */
async function checkDead(config, token) {
    await assert.rejects(openid.fetchUserInfo(config, token, openid.skipSubjectCheck), (error) => {
        assert(error instanceof openid.WWWAuthenticateChallengeError, String(error));
        const [{ scheme, parameters: { error: code } }] = error.cause;
        assert.deepEqual([error.status, scheme, code], [401, 'bearer', 'invalid_token']);
        return true;
    });
}

/** The token endpoint answers `promise` with the error `code` of RFC 6749. */
function checkRefused(promise, code, status = 400) {
    return assert.rejects(promise, (error) => {
        assert(error instanceof openid.ResponseBodyError, String(error));
        assert.deepEqual([error.error, error.status], [code, status]);
        return true;
    });
}

async function checkDiscovery() {
    const server = (await discover('suite-basic')).serverMetadata();
    assert.equal(server.issuer, given.base);
    const paths = {
        authorization_endpoint: '/o/oauth2/auth', token_endpoint: '/o/oauth2/token',
        revocation_endpoint: '/o/oauth2/revoke', jwks_uri: '/o/oauth2/keys',
        userinfo_endpoint: '/o/v2/user',
    };
    const known = Object.keys(paths).map((name) => server[name]);
    assert.deepEqual(known, Object.values(paths).map((path) => given.base + path));
    const lists = {
        response_types_supported: ['code', 'token', 'id_token token'],
        grant_types_supported: ['authorization_code', 'implicit', 'password', 'refresh_token'],
        token_endpoint_auth_methods_supported: AUTHENTICATIONS,
        scopes_supported: `${EVERYTHING} admin`.split(' '),
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
    };
    for (const [name, values] of Object.entries(lists)) {
        assert(values.every((value) => server[name]?.includes(value)), `${name}: ${server[name]}`);
    }
    assert.deepEqual(server.code_challenge_methods_supported, ['S256']);
    assert.equal(server.authorization_response_iss_parameter_supported, true);
    const below = await fetch(`${given.base}/o/.well-known/openid-configuration`);
    assert.deepEqual(await below.json(), { ...server });
}

/** A client with its secret in the header: consent once, userinfo, refresh, revocation. */
async function checkBasic(config) {
    const browser = new Browser();
    const first = await ask(config, browser);
    assert.equal(first.pages[0], 'login');
    assert.equal(first.callback.searchParams.get('iss'), given.base);
    const tokens = await exchange(config, first);
    const seen = await checkTokens(config, tokens);
    assert.deepEqual(seen.roles, editor.roles);
    assert.deepEqual([seen.given_name, seen.family_name], [editor.firstName, editor.lastName]);
    assert.deepEqual([seen.email, seen.department], [editor.emailAddress, editor.department]);
    assert.equal(seen.customer_name, organization(editor.organization).name);
    assert.equal(String(seen.user_id), String(editor.id));
    assert(seen.name && seen.customer_id);
    const again = await ask(config, browser);
    assert.deepEqual(again.pages, [], 'signed in and consented: straight through');
    await checkTokens(config, await exchange(config, again));

    const fresh = await openid.refreshTokenGrant(config, tokens.refresh_token);
    assert.equal(fresh.claims().sub, tokens.claims().sub);
    assert.notEqual(fresh.refresh_token, tokens.refresh_token);
    await checkTokens(config, fresh);
    await checkDead(config, tokens.access_token);
    await openid.tokenRevocation(config, fresh.access_token, { token_type_hint: 'access_token' });
    await checkDead(config, fresh.access_token);
    await openid.tokenRevocation(config, 'no-such-token');
    return first.pages;
}

/** A client with its secret in the body: narrow scope, denied consent, a revoked refresh token. */
async function checkPost(config, stranger) {
    const browser = new Browser();
    const scope = 'openid email';
    const tokens = await exchange(config, await ask(config, browser, { scope }));
    const seen = await checkTokens(config, tokens, scope);
    assert.equal(seen.email, editor.emailAddress);
    for (const name of ['roles', 'name', 'customer_id']) assert(!(name in seen), name);
    const url = new URL(`${given.base}/user/v1/profile`);
    const answer = openid.fetchProtectedResource(config, tokens.access_token, url, 'GET');
    assert.equal((await answer.catch((error) => error)).status, 403, 'scope roles is missing');

    const refused = await ask(config, browser, { decision: 'deny', scope: `${scope} collection` });
    assert.deepEqual(refused.pages, ['consent']);
    await assert.rejects(exchange(config, refused), { error: 'access_denied' });
    await checkRefused(exchange(stranger, await ask(config, browser, { scope })), 'invalid_grant');

    await openid.tokenRevocation(config, tokens.refresh_token);
    await checkRefused(openid.refreshTokenGrant(config, tokens.refresh_token), 'invalid_grant');
    await checkDead(config, tokens.access_token);
}

/** A client without a secret: PKCE is required; reuse of a code or refresh token revokes the tokens. */
async function checkPublic(config) {
    const browser = new Browser();
    const tokens = await exchange(config, await ask(config, browser));
    await checkTokens(config, tokens);
    const fresh = await openid.refreshTokenGrant(config, tokens.refresh_token);
    await checkRefused(openid.refreshTokenGrant(config, tokens.refresh_token), 'invalid_grant');
    await checkRefused(openid.refreshTokenGrant(config, fresh.refresh_token), 'invalid_grant');
    await checkDead(config, fresh.access_token);

    const asked = await ask(config, browser);
    const replayed = await exchange(config, asked);
    await checkRefused(exchange(config, asked), 'invalid_grant');
    await checkDead(config, replayed.access_token);

    const mixed = { ...(await ask(config, browser)), verifier: openid.randomPKCECodeVerifier() };
    await checkRefused(exchange(config, mixed), 'invalid_grant');
    for (const changes of [NO_CHALLENGE, { code_challenge_method: 'plain' }]) {
        const came = await ask(config, browser, changes);
        await assert.rejects(exchange(config, came), { error: 'invalid_request' });
    }

    const { callback } = await ask(config, browser, { response_type: 'token' });
    assert.match(callback.hash, /[#&]error=unauthorized_client(&|$)/);
}

/** A single-page application: `id_token token`, and `token` alone. */
async function checkImplicit() {
    const browser = new Browser();
    const config = await discover('suite-page', openid.None(), openid.useIdTokenResponseType);
    const asked = await ask(config, browser, { ...NO_CHALLENGE, response_type: 'id_token token' });
    const checks = { expectedState: asked.state };
    const claims = await openid.implicitAuthentication(config, asked.callback, asked.nonce, checks);
    const both = new URLSearchParams(asked.callback.hash.slice(1));
    assert.equal(claims.at_hash, halfHash(both.get('access_token')));
    const seen = await openid.fetchUserInfo(config, both.get('access_token'), claims.sub);
    assert.equal(seen.email, editor.emailAddress);

    const plain = { ...NO_CHALLENGE, response_type: 'token' };
    const { callback, state } = await ask(config, browser, plain);
    const alone = new URLSearchParams(callback.hash.slice(1));
    await openid.fetchUserInfo(config, alone.get('access_token'), claims.sub);
    assert.deepEqual([alone.get('state'), alone.has('id_token')], [state, false]);
    for (const answer of [both, alone]) {
        assert.equal(answer.get('token_type'), 'Bearer');
        assert.equal(answer.get('expires_in'), String(TOKEN_VALIDITY_S));
        assert.equal(answer.get('iss'), given.base);
        assert(!answer.has('refresh_token') && !answer.has('code'));
    }
    assert.equal(asked.callback.search + callback.search, '');
}

/** Requests that must not redirect, and clients that must not authenticate. */
async function checkRefusals(config) {
    const page = async (changes) => {
        const start = openid.buildAuthorizationUrl(config, { redirect_uri: redirect, ...changes });
        const { status, headers } = await new Browser().open(start);
        assert.deepEqual([status, headers.location], [400, undefined], start.href);
    };
    await page({ client_id: 'nobody' });
    await page({ redirect_uri: `${redirect}/` });
    await page({ redirect_uri: `${redirect}?a=b` });
    for (const method of [openid.ClientSecretBasic, openid.ClientSecretPost]) {
        const wrong = await discover('suite-basic', method('wrong'));
        await assert.rejects(openid.refreshTokenGrant(wrong, 'none'), { status: 401 });
    }
    await checkRefused(openid.refreshTokenGrant(config, 'none'), 'invalid_grant');
    const form = { username, password, scope: 'roles' };
    const grant = (more) => openid.genericGrantRequest(config, 'password', { ...form, ...more });
    assert((await grant({})).access_token);
    await checkRefused(grant({ password: 'wrong' }), 'invalid_grant');
    await checkRefused(openid.genericGrantRequest(config, 'no-such', {}), 'unsupported_grant_type');
}

const secret = (id) => client(id).client_secret;
const checked = openid.enableNonRepudiationChecks;
const header = openid.ClientSecretBasic(secret('suite-basic'));
const basic = await discover('suite-basic', header, checked);
const body = openid.ClientSecretPost(secret('suite-post'));
const post = await discover('suite-post', body, checked);

await checkDiscovery();
const pages = await checkBasic(basic);
await checkPost(post, basic);
await checkPublic(await discover('suite-public', openid.None(), checked));
await checkImplicit();
await checkRefusals(basic);
report({ script: 'openid', clients: ['basic', 'post', 'public', 'page'], pages });
