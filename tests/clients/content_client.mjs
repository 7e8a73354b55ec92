// Drives search and stream of the content API through @ttab/api-client, as an integration does.
// Each answer is checked against the type that the library itself declares.
//
//   node content_client.mjs '{"base": "http://127.0.0.1:8080", "ingest": ["wirephoto", "ingest", …]}'
//
// The server holds the demo archive and has imported accounts.json; `ingest` is the command that
// ingests one more photograph, of product FOTO with the headline "Klient".
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Api, ApiError } from '@ttab/api-client';
import { given, report, user } from './common.mjs';
import { conform, methodsOf } from './types.mjs';
import { invalid, refused, tokenOf } from './user_client.mjs';

// The library's default of 2 s would count a busy machine as a fault of the server.
const TIMEOUT_MS = 60_000;
const declared = methodsOf('ContentV1');

/** The library's content API with `token`; its responses are checked against the declared type. */
function apiWith(token) {
    const target = new Api({ host: given.base, token, timeout: TIMEOUT_MS }).content;
    const call = (name) => async (...values) => {
        const answer = await target[name](...values);
        conform(declared.get(name), answer, name);
        return answer;
    };
    return { search: call('search'), stream: call('stream') };
}

async function checkSearch(api) {
    const all = await api.search('image', { s: 100 });
    assert(all.total >= 13 && all.hits.length === all.total, `${all.total}`);
    for (const hit of all.hits) {
        // The properties of a hit that users of the library read.
        const named = (variant, usage) => Object.values(hit.renditions)
            .some((one) => one.variant === variant && one.usage === usage);
        assert(named('Normal', 'Preview') && named('Normal', 'Thumbnail'), hit.uri);
        assert(named('Web', 'Preview'), hit.uri);
        assert(hit.uri.startsWith(`${given.base}/media/image/`), hit.uri);
    }
    const page = await api.search('image', { s: 2, fr: 1, sort: 'versioncreated:asc' });
    const oldest = await api.search('image', { s: 3, sort: 'versioncreated:asc' });
    assert.deepEqual(page.hits, oldest.hits.slice(1));

    // axios sends lists as `p[]=…&p[]=…`.
    const of = async (parameters) => (await api.search('image', parameters)).total;
    assert.equal(await of({ p: ['FOTO', 'NONE'] }), all.total);
    assert.equal(await of({ p: ['NONE', 'OTHER'] }), 0);
    assert.equal(await of({ p: ['FOTO', '-FOTO'] }), 0);
    assert.equal(await of({ agr: [1101, 1103] }), all.total);
    assert.equal(await of({ pubstatus: ['usable', 'replaced'] }), all.total);
    const facets = ['subject.code', 'product.code', 'person.name'];
    const counted = await api.search('_all', { facets, s: 0 });
    assert.deepEqual(Object.keys(counted.facets).sort(), [...facets].sort());
    assert.deepEqual(counted.facets['product.code'], [{ key: 'FOTO', count: all.total }]);
    assert.deepEqual(counted.hits, []);

    const bare = await api.search('image', { q: 'urtavla', layout: 'bare' });
    assert.equal(bare.total, 1);
    assert(!('byline' in bare.hits[0]) && 'headline' in bare.hits[0]);
    return all;
}

async function checkRefusals(api) {
    await invalid(api.search('image', { s: 10001 }), 'maximum', 'query', 's');
    await invalid(api.search('image', { agr: [1, 1101] }), 'enum', 'query', 'agr');
    await invalid(api.search('nonsense', {}), 'enum', 'path', 'mediaType');
    await invalid(api.search('image', { q: '(' }), 'format', 'query', 'q');
    await invalid(api.stream('stockfoto', {}), 'enum', 'path', 'mediaType');
    for (const token of [undefined, 'not-a-token']) {
        await refused(apiWith(token).search('text', {}), 401, { message: 'Unauthorized' });
    }
    await refused(apiWith('not-a-token').search('image', {}), 401, { message: 'Unauthorized' });
    assert((await apiWith(undefined).search('image', {})).total > 0);
    const commissioned = api.search('image', { pubstatus: ['commissioned'] });
    await assert.rejects(commissioned, (error) => error instanceof ApiError && error.statusCode === 403);
}

async function checkStream(api, newest) {
    const first = await api.stream('image', { wait: 5 });
    assert.deepEqual(first.hits.map(({ uri }) => uri), [newest]);
    assert.deepEqual(await api.stream('image', { last: newest, wait: 1 }), { hits: [] });
    const waiting = api.stream('image', { last: newest, wait: 60, p: ['FOTO'], q: 'klient' });
    const [program, ...values] = given.ingest;
    await promisify(execFile)(program, values);
    const { hits } = await waiting;
    assert.deepEqual(hits.map(({ headline }) => headline), ['Klient']);
}

const api = apiWith(await tokenOf(user('suite-editor'), 'roles'));
const all = await checkSearch(api);
await checkRefusals(api);
await checkStream(api, all.hits[0].uri);
report({ items: all.total });
