// Drives every collection method of @ttab/api-client, as an integration does.
//
//   node collection_client.mjs '{"base": "http://127.0.0.1:8080", "items": ["image/…", …]}'
//
// The server holds `items`, three photographs that suite-editor may see, and has imported
// accounts.json.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Api, ApiError } from '@ttab/api-client';
import { given, report, user } from './common.mjs';
import { conform, methodsOf } from './types.mjs';
import { invalid, tokenOf } from './user_client.mjs';

const TIMEOUT_MS = 60_000;
const declared = methodsOf('CollectionV1');
const called = new Set();
const apiOf = async (name) => {
    const token = await tokenOf(user(name), 'roles');
    return new Api({ host: given.base, token, timeout: TIMEOUT_MS }).collection;
};
const library = await apiOf('suite-editor');
const api = Object.fromEntries([...declared.keys()].map((name) => [name, async (...values) => {
    const answer = await library[name](...values);
    conform(declared.get(name), answer, name);
    called.add(name);
    return answer;
}]));

// The library keeps only the message of an error; the body is checked too.
let refusal = null;
const axios = createRequire(createRequire(import.meta.url).resolve('@ttab/api-client'))('axios');
axios.interceptors.response.use(undefined, (error) => {
    refusal = error.response;
    return Promise.reject(error);
});

/** `call` ends in a 404 whose body is a plain string. */
async function missing(call) {
    const error = await call.then(() => assert.fail('answered'), (thrown) => thrown);
    assert(error instanceof ApiError, String(error));
    assert.equal(error.statusCode, 404);
    assert.match(refusal.headers['content-type'], /^text\/plain/);
    assert.equal(refusal.data, 'No such collection');
}

const uri = (key) => `${given.base}/media/${key}`;
const [first, second, third] = given.items.map(uri);
const named = (...uris) => uris.map((one) => ({ uri: one }));

assert.deepEqual(await api.getCollections(), []);
const made = await api.addCollection({ name: 'Klockor', public: false });
assert.deepEqual(
    { name: made.name, owner: made.owner, public: made.public, content: made.content },
    { name: 'Klockor', owner: 'suite-editor', public: false, content: [] },
);
const { id } = made;
const text = (answer) => assert(typeof answer === 'string' && answer.length > 0, answer);
text(await api.addCollectionItems(id, named(second, first, uri('image/nobody'))));
text(await api.addCollectionItems(id, named(third, second)));
const whole = await api.getCollection(id);
assert.deepEqual(whole.content, [second, first, third]);
assert.deepEqual(whole.items.map((item) => item.uri), whole.content);
text(await api.removeCollectionItems(id, named(first, uri('image/nobody'))));
assert.deepEqual((await api.getCollection(id)).content, [second, third]);
const changed = await api.updateCollection(id, { name: 'Ur', public: true });
assert.deepEqual([changed.name, changed.public], ['Ur', true]);
assert.deepEqual((await api.getCollections()).map((one) => one.name), ['Ur']);

const other = await apiOf('suite-admin');
assert.deepEqual((await other.getCollection(id)).content, [second, third]);
assert.deepEqual(await other.getCollections(), []);
await missing(other.updateCollection(id, { name: 'Min' }));
await missing(other.addCollectionItems(id, named(first)));
await missing(other.removeCollection(id));
await missing(library.getCollection('00000000-0000-4000-8000-000000000000'));
await invalid(library.addCollection({ public: true }), 'required', 'body', 'name');
await invalid(library.addCollectionItems(id, []), 'minimum', 'body', '');
await invalid(library.addCollectionItems(id, [{ uri: 'x' }]), 'format', 'body', 'uri');
text(await api.removeCollection(id));
await missing(library.getCollection(id));
assert.deepEqual(await api.getCollections(), []);

assert.deepEqual([...declared.keys()].filter((name) => !called.has(name)), [], 'not called');
report({ methods: called.size });
