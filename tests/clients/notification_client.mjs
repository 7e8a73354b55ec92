// Drives every notification method of @ttab/api-client and its ContentStream, as an integration does.
//
//   node notification_client.mjs '{"base": "http://127.0.0.1:8080", "ingest": [["wirephoto", …], …]}'
//
// The server holds the demo archive and has imported accounts.json; each command of `ingest` ingests
// one more photograph of product FOTO, with the headlines "Ett", "Två", "Tre".
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Api, ContentStream } from '@ttab/api-client';
import { given, report, user } from './common.mjs';
import { conform, methodsOf } from './types.mjs';
import { invalid, refused, tokenOf } from './user_client.mjs';

const TIMEOUT_MS = 60_000;
const declared = methodsOf('ContentV1');
const token = await tokenOf(user('suite-editor'), 'roles');
const library = new Api({ host: given.base, token, timeout: TIMEOUT_MS });
const called = new Set();

/** A notification without `tr`, which we return and the library does not declare. */
function typed(answer) {
    if (Array.isArray(answer)) return answer.map(typed);
    if (answer?.mediaType === undefined) return answer;
    const { tr, ...rest } = answer;
    return rest;
}

const api = Object.fromEntries([...declared.keys()].map((name) => [name, async (...values) => {
    const answer = await library.content[name](...values);
    conform(declared.get(name), typed(answer), name);
    called.add(name);
    return answer;
}]));

const question = { q: 'urtavla OR klocka', p: ['FOTO', '-SPORT'], agr: [1101] };
const mail = { ...question, title: 'Klockor', email: 'desk@example.org' };
const scheduled = { ...mail, schedule: '0 7 * * 1-5', timezone: 'Europe/Helsinki', tr: 'd' };

/** `answer` echoes `sent` and nothing else. */
function echoes(answer, type, mediaType, sent) {
    const { id, ...rest } = answer;
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.deepEqual(rest, { title: '', ...sent, type, mediaType });
    return id;
}

const mobile = echoes(
    await api.addNotificationMobile('image', { ...question, title: 'Klockor' }),
    'mobile', 'image', { ...question, title: 'Klockor' },
);
const email = echoes(await api.addNotificationEmail('text', mail), 'email', 'text', mail);
const digest = echoes(
    await api.addNotificationScheduledEmail('_all', scheduled), 'scheduled-email', '_all', scheduled,
);
const stream = echoes(await api.addNotificationStream('image', {}), 'stream', 'image', {});

const ids = async (mediaType) => (await api.getNotifications(mediaType)).map(({ id }) => id);
assert.deepEqual(await ids('_all'), [mobile, email, digest, stream]);
assert.deepEqual(await ids('image'), [mobile, stream]);
assert.deepEqual(await ids('video'), []);

// With an id, any media type in the path finds it; its own media type is unchanged.
const changed = { title: 'Ny', q: 'sol' };
echoes(await api.updateNotificationMobile('video', mobile, changed), 'mobile', 'image', changed);
const post = { ...changed, email: 'b@example.org' };
echoes(await api.updateNotificationEmail('text', email, post), 'email', 'text', post);
const { timezone: _zone, ...bare } = scheduled;
echoes(
    await api.updateNotificationScheduledEmail('_all', digest, bare),
    'scheduled-email', '_all', { ...bare, timezone: 'Europe/Stockholm' },
);
echoes(
    await api.updateNotificationStream('image', stream, { title: 'Ström', tr: 'w' }),
    'stream', 'image', { title: 'Ström', tr: 'w' },
);
assert.deepEqual(await api.getNotificationStream('image', stream, { wait: 1 }), { hits: [] });

const none = '00000000-0000-4000-8000-000000000000';
await refused(library.content.updateNotificationEmail('text', none, post), 404);
await refused(library.content.updateNotificationEmail('text', mobile, post), 404);
await refused(library.content.getNotificationStream('image', none, {}), 404);
await refused(library.content.getNotificationStream('image', mobile, {}), 404);
await refused(library.content.removeNotification('image', none), 404);
await invalid(library.content.addNotificationStream('stockfoto', {}), 'enum', 'path', 'mediaType');
for (const [name, rule, change] of [
    ['schedule', 'format', { schedule: '61 * * * *' }],
    ['schedule', 'format', { schedule: '0 0 7 * * *' }],
    ['timezone', 'format', { timezone: 'Mars/Base' }],
    ['email', 'format', { email: 'nobody' }],
    ['email', 'pattern', { email: 'a@b.c\r\nBcc: x@y.z' }],
    ['title', 'pattern', { title: 'a\r\nBcc: x@y.z' }],
    ['q', 'pattern', { q: 'a\nb' }],
    ['p', 'pattern', { p: ['A\r\nB'] }],
    ['q', 'format', { q: '(' }],
    ['agr', 'enum', { agr: [1] }],
    ['tr', 'enum', { tr: 'decade' }],
    ['schedule', 'pattern', { schedule: '0 7 * *\n1' }],
    ['timezone', 'pattern', { timezone: 'Europe/Stockholm\r\n' }],
]) {
    const call = library.content.addNotificationScheduledEmail('image', { ...scheduled, ...change });
    await invalid(call, rule, 'query', name);
}
for (const name of ['title', 'email', 'schedule']) {
    const { [name]: _left, ...rest } = scheduled;
    const call = library.content.addNotificationScheduledEmail('image', rest);
    await invalid(call, 'required', 'query', name);
}
assert.deepEqual(await ids('_all'), [mobile, email, digest, stream], 'nothing was stored');

// Another user sees and touches none of them.
const other = new Api({
    host: given.base, token: await tokenOf(user('suite-admin'), 'roles'), timeout: TIMEOUT_MS,
}).content;
assert.deepEqual(await other.getNotifications('_all'), []);
await refused(other.getNotificationStream('image', stream, {}), 404);
await refused(other.removeNotification('image', stream), 404);
await refused(other.updateNotificationStream('image', stream, { title: 'x' }), 404);

for (const id of [mobile, email, digest]) {
    assert.equal(await api.removeNotification('page', id), 'OK');
}
assert.deepEqual(await ids('_all'), [stream]);

// The stream of the library receives new items in order, each once.
const got = [];
const reading = new ContentStream(library, 'image', { q: 'ett OR två OR tre', wait: 5 });
const errors = [];
reading.on('error', (error) => errors.push(error));
const all = new Promise((resolve) => {
    reading.on('data', (hit) => {
        got.push(hit.headline);
        if (got.length === 3) {
            resolve();
        }
    });
});
while ((await ids('_all')).length < 2) {
    // The library creates its stream asynchronously.
}
for (const [program, ...values] of given.ingest) {
    await promisify(execFile)(program, values);
}
await all;
reading.stop();
await new Promise((resolve) => reading.on('close', resolve));
assert.deepEqual(got, ['Ett', 'Två', 'Tre']);
assert.deepEqual(errors, []);

const methods = [...declared.keys()].filter((name) => /otification/.test(name));
assert.deepEqual(methods.filter((name) => !called.has(name)), [], 'methods that were not called');
report({ methods: methods.length, got: got.length });
