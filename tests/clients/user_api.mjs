// Drives the user API through @ttab/api-client, as an integration does, and calls every method of
// its UserV1. Each answer is checked against the type that the library itself declares.
//
//   node user_api.mjs '{"base": "http://127.0.0.1:8080",
//       "media": ["/media/image/demo-urtavla.jpg", "/media/image/demo-paint-brushes.jpg"]}'
//
// The server has imported accounts.json and holds no orders of those users: the script buys
// and reports. `media` are two Hires of items of product FOTO.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { given, one, organization, report, user } from './common.mjs';
import { conform, typeOf } from './types.mjs';
import { apiWith, called, declared, download, invalid, refused, tokenOf } from './user_client.mjs';

const DOWNLOADABLE_MS = 30 * 24 * 60 * 60 * 1000;
const UNKNOWN_ID = 2147483647;

const editor = user('suite-editor');
const admin = user('suite-admin');
const outsider = user('suite-outsider');

async function checkRefusedTokens() {
    const values = {
        getOrder: [{}], updateOrder: [1, { approve: false }], updateProfile: [{}],
        getProfileByProperty: [['a']], updateProfileByProperty: [['a'], {}],
        updateDevice: ['token', { type: 'ios', model: 'm' }], removeDevice: ['token'],
        addOrganizationUser: [{ emailAddress: 'a@b.example', firstName: 'A', lastName: 'B' }],
        getOrganizationUser: [1], updateOrganizationUser: [1, {}],
    };
    for (const api of [apiWith(undefined), apiWith('not-a-token')]) {
        for (const name of declared.keys()) {
            const call = api[name](...(values[name] ?? []));
            const { headers } = await refused(call, 401, { message: 'Unauthorized' });
            assert.match(headers['www-authenticate'], /^Bearer\b/, name);
        }
    }
}

async function checkUser(api) {
    const seen = await api.getUser();
    const fields = ['id', 'userName', 'firstName', 'lastName', 'emailAddress', 'department',
        'phoneNumber', 'access', 'active'];
    for (const field of fields) assert.deepEqual(seen[field], editor[field], field);
    assert.deepEqual(seen.agreements.map(({ id }) => id).sort(), editor.agreements);
    const [subscription, prepaid, direct] = editor.agreements
        .map((id) => one(seen.agreements, (agreement) => agreement.id === id));
    assert.equal(subscription.type, 'Subscription');
    assert.deepEqual(subscription.products.map(({ code }) => code), ['FOTO']);
    assert.equal(Date.parse(subscription.expires), Date.parse('2035-12-31T23:00:00Z'));
    assert.deepEqual(prepaid.prepaids, { total: 10, remaining: 10 });
    assert(!('expires' in direct) && !('prepaids' in direct));

    // The deprecated list has no Prepaid in its type.
    const old = await api.getAgreements();
    for (const { id, type, superAgreement } of [subscription, direct]) {
        const same = one(old, (agreement) => agreement.id === id);
        assert.deepEqual([same.type, same.isSuperAgreement], [type, superAgreement]);
        assert.deepEqual(same.products.map(({ code }) => code), ['FOTO']);
    }
    const { name, currency, country, address, phoneNumber } = organization(editor.organization);
    const own = { id: editor.organization, name, currency, country, address, phoneNumber };
    assert.deepEqual(await api.getOrganization(), own);
    return old.length;
}

async function checkProfile(api, other) {
    await api.updateProfile({ kept: { deep: [1, null, 'å'] }, gone: true });
    await api.updateProfile({ kept: { deep: [1, null, 'å'] }, språk: 'sv' });
    assert.deepEqual(await api.getProfile(), { kept: { deep: [1, null, 'å'] }, språk: 'sv' });
    assert.deepEqual(await api.getProfileByProperty(['språk', 'absent']), { språk: 'sv' });

    // Listed and present is written; listed and absent is kept; present but unlisted is ignored.
    const changes = { språk: 'fi', new: null, other: 1 };
    await api.updateProfileByProperty(['språk', 'new', 'kept'], changes);
    const merged = { kept: { deep: [1, null, 'å'] }, språk: 'fi', new: null };
    assert.deepEqual(await api.getProfile(), merged);
    assert.deepEqual(await api.getProfileByProperty(['kept', 'språk', 'new']), merged);
    assert.deepEqual(await other.getProfile(), {}, 'a profile belongs to one user');
    await refused(api.updateProfile([1]), 400, { message: 'Request validation failed' });
    const list = api.updateProfileByProperty(['a'], [1]);
    await refused(list, 400, { message: 'Request validation failed' });
    assert.deepEqual(await api.getProfile(), merged);
}

async function checkDevices(api) {
    const model = { model: 'iPhone 99' };
    for (const type of ['ios', 'ios-sandbox', 'android']) {
        await api.updateDevice('device-token', { type, name: 'Åsas', ...model });
    }
    await api.updateDevice('device-token', { type: 'ios', ...model });
    await api.removeDevice('device-token');
    await invalid(api.updateDevice('t', { type: 'windows', ...model }), 'enum', 'query', 'type');
    await invalid(api.updateDevice('t', model), 'required', 'query', 'type');
    await invalid(api.updateDevice('t', { type: 'ios' }), 'required', 'query', 'model');
}

const isOf = (path) => (order) => new URL(order.item.uri).pathname === path.replace(/\.jpg$/, '');
const paidBy = (id) => (order) => order.price.agreement.id === id;

async function checkPurchases(api, adminApi, token, adminToken) {
    const [subscription, prepaid, direct] = editor.agreements;
    const [path, adminPath] = given.media;
    assert.deepEqual(await api.getOrder({}), { orders: [] }, 'a fresh server');
    // Downloading again is free, by every agreement.
    for (const query of ['', '', `?agr=${prepaid}`, `?agr=${prepaid}`]) {
        const { status, type, size, json } = await download(token, path + query);
        assert.deepEqual([status, type], [200, 'image/jpeg'], JSON.stringify(json));
        assert(size > 10_000);
    }
    const { agreements } = await api.getUser();
    assert.equal(one(agreements, ({ id }) => id === prepaid).prepaids.remaining, 9);
    const ordered = await download(token, `${path}?agr=${direct}`);
    assert.deepEqual([ordered.status, ordered.json?.errors[0].errorCode], [403, 'order_required']);
    assert.equal((await download(adminToken, adminPath)).status, 200);

    const { orders } = await api.getOrder({ size: 20, start: 0, status: 'all' });
    assert.equal(orders.length, 3, 'a row for each agreement');
    assert(orders.every(isOf(path)));
    assert(one(orders, paidBy(direct)).approved !== true);
    assert.equal(one(orders, paidBy(prepaid)).price.agreement.type, 'Prepaid');
    const row = one(orders, paidBy(subscription));
    assert.equal(Date.parse(row.downloadableUntil) - Date.parse(row.created), DOWNLOADABLE_MS);
    assert(!('reported' in row));
    const pages = [0, 1, 2].map((start) => api.getOrder({ size: 1, start }));
    const ids = (await Promise.all(pages)).map((page) => one(page.orders, () => true).id);
    assert.deepEqual(ids, orders.map(({ id }) => id));
    assert.deepEqual(await api.getOrder({ start: 3 }), { orders: [] });
    const all = (await adminApi.getOrder({})).orders;
    assert.equal(all.length, 4, 'an admin sees the organization');
    return { row, foreign: one(all, isOf(adminPath)) };
}

async function checkReporting(api, adminApi, token, { row, foreign }) {
    const pricelist = (await download(token, `${new URL(row.item.uri).pathname}/pricelist`)).json;
    conform({ array: typeOf('license') }, pricelist, 'pricelist');
    const license = { uuid: pricelist[0].uuid };
    const update = (fields) => api.updateOrder(row.id, fields);
    await invalid(update({ approve: 'yes', license }), 'type', 'body', 'approve');
    await invalid(update({ license }), 'required', 'body', 'approve');
    await invalid(update({ approve: true, license: { uuid: 'x' } }), 'format', 'body', 'uuid');
    await invalid(update({ approve: true, license: {} }), 'required', 'body', 'uuid');
    const more = update({ approve: true, license, price: 1 });
    await invalid(more, 'additionalProperties', 'body', 'price');
    await refused(update({ approve: true }), 400);
    await refused(update({ approve: true, license: { uuid: randomUUID() } }), 400);
    await refused(api.updateOrder(UNKNOWN_ID, { approve: true, license }), 404);
    await refused(api.updateOrder(foreign.id, { approve: true, license }), 404);
    await invalid(api.getOrder({ status: 'done' }), 'enum', 'query', 'status');
    await invalid(api.getOrder({ size: 'many' }), 'type', 'query', 'size');

    const idsBy = async (status) => (await api.getOrder({ status })).orders.map(({ id }) => id);
    assert((await idsBy('unreported')).includes(row.id));
    const updated = await update({ approve: true, license, invoiceText: 'Sida 3, åäö' });
    assert.deepEqual([updated.id, updated.approved], [row.id, true]);
    assert.equal(updated.invoiceText, 'Sida 3, åäö');
    assert.deepEqual(updated.price.license, pricelist[0]);
    assert(Date.parse(updated.reported) >= Date.parse(row.created));
    assert.deepEqual(await idsBy('reported'), [row.id]);
    assert(!(await idsBy('unreported')).includes(row.id));
    assert.deepEqual(one((await api.getOrder({})).orders, ({ id }) => id === row.id), updated);
    await refused(update({ approve: true, license }), 400, { code: 'order_already_reported' });
    assert((await adminApi.updateOrder(foreign.id, { approve: false })).approved !== true);
}

async function checkOrganizationUsers(api, narrow, plain) {
    await refused(narrow.getOrganizationUsers(), 403, { code: 'insufficient_scope' });
    await refused(plain.getOrganizationUsers(), 403, { code: 'admin_required' });
    const before = await api.getOrganizationUsers();
    const names = before.map(({ userName }) => userName).sort();
    assert.deepEqual(names, ['suite-admin', 'suite-editor', 'suite-service']);
    // Absent values are omitted, not null.
    const bare = await api.getOrganizationUser(user('suite-service').id);
    assert(!('department' in bare) && !('direct' in bare.phoneNumber), JSON.stringify(bare));

    const emailAddress = 'new.user+1@test-desk.example';
    const fields = { emailAddress, firstName: 'Ny', lastName: 'Användare', department: 'Desken' };
    const phoneNumber = { direct: '+46 8 465 004 99', mobile: '+46 70 174 06 99' };
    const access = { mediebank: true };
    const added = await api.addOrganizationUser({ ...fields, phoneNumber, access });
    for (const name of Object.keys(fields)) assert.equal(added[name], fields[name]);
    assert.deepEqual([added.phoneNumber, added.access.mediebank], [phoneNumber, true]);
    assert.deepEqual(await api.getOrganizationUser(added.id), added);
    const changes = { department: 'Text', access: { admin: true } };
    const updated = await api.updateOrganizationUser(added.id, changes);
    assert.deepEqual([updated.department, updated.access.admin], ['Text', true]);
    assert.deepEqual({ ...updated, department: added.department, access: added.access }, added);
    assert.deepEqual(await api.getOrganizationUser(added.id), updated);
    assert.equal((await api.getOrganizationUsers()).length, before.length + 1);

    const other = { ...fields, emailAddress: 'x@y.example' };
    const add = (values) => api.addOrganizationUser({ ...other, ...values });
    await refused(api.addOrganizationUser(fields), 400, { code: 'userName_in_use' });
    const mute = add({ phoneNumber: { direct: 'no number' } });
    await refused(mute, 400, { code: 'phoneNumber_direct_invalid' });
    await invalid(add({ emailAddress: 'nobody' }), 'format', 'body', 'emailAddress');
    await invalid(add({ lastName: undefined }), 'required', 'body', 'lastName');
    await invalid(add({ firstName: 5 }), 'type', 'body', 'firstName');
    await invalid(add({ userName: 'chosen' }), 'additionalProperties', 'body', 'userName');
    await invalid(add({ access: { root: true } }), 'additionalProperties', 'body', 'root');
    const update = (id, values) => api.updateOrganizationUser(id, values);
    await invalid(update(added.id, { active: false }), 'additionalProperties', 'body', 'active');
    await invalid(api.getOrganizationUser('abc'), 'type', 'path', 'id');
    for (const id of [UNKNOWN_ID, outsider.id]) {
        await refused(api.getOrganizationUser(id), 404);
        await refused(update(id, { department: 'Text' }), 404);
    }
    assert.equal((await api.getOrganizationUsers()).length, before.length + 1);
    return { added: added.userName };
}

const everything = 'email roles user customer profile collection admin';
const token = await tokenOf(editor, everything);
const adminToken = await tokenOf(admin, everything);
const [api, adminApi] = [apiWith(token), apiWith(adminToken)];
const narrowApi = apiWith(await tokenOf(admin, 'roles'));
const serviceApi = apiWith(await tokenOf(user('suite-service'), 'roles'));

await checkRefusedTokens();
const agreements = await checkUser(api);
await refused(serviceApi.getUser(), 403, { code: 'service_account_unsupported' });
await refused(serviceApi.getOrder({}), 403, { code: 'service_account_unsupported' });
await checkProfile(api, adminApi);
await checkDevices(api);
const bought = await checkPurchases(api, adminApi, token, adminToken);
await checkReporting(api, adminApi, token, bought);
const users = await checkOrganizationUsers(adminApi, narrowApi, api);
assert.deepEqual([...called].sort(), [...declared.keys()].sort(), 'every method was answered');
report({ script: 'user_api', methods: called.size, agreements, order: bought.row.id, ...users });
