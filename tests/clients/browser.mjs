// The parts of a web browser that signing in needs: it stores cookies, follows redirects, and fills in
// and submits the forms of the login and consent pages.
import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';

const PAGES_MAX = 10;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescape(text) {
    return text.replace(/&(#x?[0-9a-f]+|\w+);/gi, (whole, name) => {
        if (name[0] !== '#') return ENTITIES[name] ?? whole;
        const hex = name[1].toLowerCase() === 'x';
        return String.fromCodePoint(Number.parseInt(name.slice(hex ? 2 : 1), hex ? 16 : 10));
    });
}

function attributes(tag) {
    const pattern = /([\w-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g;
    const pairs = [...tag.matchAll(pattern)].map(([, name, double, single, bare]) => {
        return [name.toLowerCase(), unescape(double ?? single ?? bare ?? '')];
    });
    return Object.fromEntries(pairs);
}

/** The forms of a page that are sent by POST: action, named inputs, named buttons. */
function forms(html) {
    const tags = (text, name) => {
        const found = [...text.matchAll(new RegExp(`<${name}\\b([^>]*)>`, 'gi'))];
        return found.map((match) => attributes(match[1])).filter((tag) => tag.name);
    };
    const all = [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map((match) => {
        const { action = '', method = 'get' } = attributes(match[1]);
        const inputs = tags(match[2], 'input');
        return { action, method: method.toLowerCase(), inputs, buttons: tags(match[2], 'button') };
    });
    return all.filter((form) => form.method === 'post');
}

/** Whether the CSP directive `form-action` lets a form of `page` end up at `target`. */
function mayEndAt(policy, page, target) {
    const sources = /(?:^|;)\s*form-action\s+([^;]*)/i.exec(policy ?? '')?.[1];
    if (sources === undefined) return true;
    return sources.trim().split(/\s+/).some((source) => {
        if (source === "'self'") return target.origin === page.origin;
        return source === '*' || source === target.protocol || target.href.startsWith(source);
    });
}

export class Browser {
    #cookies = new Map();

    /** One request, redirects not followed: `{status, headers, body}`. */
    async open(url, form) {
        const cookies = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const headers = cookies ? { cookie: cookies } : {};
        if (form) {
            headers['content-type'] = 'application/x-www-form-urlencoded';
            headers.origin = url.origin;
        }
        const { request } = url.protocol === 'https:' ? https : http;
        const answer = await new Promise((resolve, reject) => {
            const sent = request(url, { method: form ? 'POST' : 'GET', headers }, resolve);
            sent.on('error', reject).end(form?.toString());
        });
        let body = '';
        for await (const part of answer.setEncoding('utf8')) body += part;
        for (const line of answer.headers['set-cookie'] ?? []) this.#keep(line);
        return { status: answer.statusCode, headers: answer.headers, body };
    }

    #keep(line) {
        const [pair, ...rest] = line.split(';');
        const at = pair.indexOf('=');
        const gone = rest.some((part) => /^\s*max-age\s*=\s*(0|-\d+)\s*$/i.test(part));
        if (gone) this.#cookies.delete(pair.slice(0, at).trim());
        else this.#cookies.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim());
    }

    /**
     * Opens the authorization URL `start` and does what the pages ask, until the server sends the
     * browser to `redirect`. Gives that address and the pages seen: `login`, `consent`.
     */
    async authorize(start, { redirect, username, password, decision = 'allow' }) {
        const pages = [];
        let url = start;
        let sent = null;
        let answer = await this.open(url);
        for (let step = 0; step < PAGES_MAX; step += 1) {
            if (answer.status === 302 || answer.status === 303) {
                const target = new URL(answer.headers.location, url);
                assert(!sent || mayEndAt(sent.policy, sent.url, target), `CSP stops ${target}`);
                const place = target.origin + target.pathname;
                if (place === redirect) return { callback: target, pages };
                assert.equal(target.origin, start.origin, 'the browser stays with the server');
                url = target;
                answer = await this.open(url);
                continue;
            }
            assert.equal(answer.status, 200, `${url}: ${answer.body.slice(0, 400)}`);
            assert.match(answer.headers['content-type'], /^text\/html/);
            const values = { username, password, decision };
            const { kind, form, fields } = this.#fill(answer.body, values);
            assert(!pages.includes(kind), `the ${kind} page came twice`);
            pages.push(kind);
            sent = { url, policy: answer.headers['content-security-policy'] };
            url = new URL(form.action, url);
            answer = await this.open(url, fields);
            assert.equal(answer.status, 303, `sending the ${kind} form gave ${answer.status}`);
        }
        throw new Error(`more than ${PAGES_MAX} pages`);
    }

    #fill(html, { username, password, decision }) {
        const all = forms(html);
        const login = all.find(({ inputs }) => inputs.some((input) => input.name === 'password'));
        const consent = all.find(({ buttons }) => buttons.some((tag) => tag.name === 'decision'));
        const form = login ?? consent;
        assert(form, `no form to sign in or to consent: ${html.slice(0, 400)}`);
        const hidden = form.inputs.filter((input) => input.type?.toLowerCase() === 'hidden');
        const fields = new URLSearchParams(hidden.map(({ name, value = '' }) => [name, value]));
        if (login) {
            assert(form.inputs.some((input) => input.name === 'username'));
            fields.append('username', username);
            fields.append('password', password);
            return { kind: 'login', form, fields };
        }
        const allows = decision === 'allow';
        const choices = form.buttons.filter((tag) => tag.name === 'decision');
        const button = choices.find((tag) => (tag.value === 'allow') === allows);
        assert(button, `no button to ${decision}`);
        fields.append('decision', button.value);
        return { kind: 'consent', form, fields };
    }
}
