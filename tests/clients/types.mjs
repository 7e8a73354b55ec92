// Reads the types that @ttab/api-client declares in its api.d.ts and checks values against them, so
// that the expectation is that of the library and not a copy of it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Constraints of the contract beyond the declared types, by field name. */
const FORMATS = {
    // A notification's is a UUID, the others are numbers.
    id: (value) => Number.isSafeInteger(value) || UUID.test(value),
    customerId: Number.isSafeInteger,
    total: Number.isSafeInteger,
    remaining: Number.isSafeInteger,
    created: (value) => DATE_TIME.test(value),
    downloadableUntil: (value) => DATE_TIME.test(value),
    reportingDeadline: (value) => DATE_TIME.test(value),
    reported: (value) => DATE_TIME.test(value),
    expires: (value) => DATE_TIME.test(value),
    uuid: (value) => UUID.test(value),
    // An order's price is an object, a licence's is an amount of money.
    price: (value) => typeof value === 'object' || /^-?\d+\.\d\d$/.test(value),
};

class Parser {
    constructor(text) {
        const plain = text.replace(/\/\*[\s\S]*?\*\//g, '');
        this.tokens = plain.match(/'[^']*'|[\w$]+|[{}<>()[\]|:;?,=]/g);
        this.at = 0;
    }
    is(token) {
        if (this.tokens[this.at] !== token) return false;
        this.at += 1;
        return true;
    }
    need(token) {
        assert.equal(this.tokens[this.at], token, `api.d.ts, token ${this.at}`);
        this.at += 1;
    }
    word() {
        return this.tokens[this.at++].replaceAll("'", '');
    }
    /** Starts after the first place where these tokens follow each other. */
    seek(...wanted) {
        const fits = (_, at) => wanted.every((token, index) => this.tokens[at + index] === token);
        this.at = this.tokens.findIndex(fits) + wanted.length;
        assert.notEqual(this.at, wanted.length - 1, `api.d.ts: ${wanted.join(' ')}`);
    }
    type() {
        const any = [this.single()];
        while (this.is('|')) any.push(this.single());
        return any.length === 1 ? any[0] : { any };
    }
    single() {
        if (this.is('{')) return { fields: this.fields() };
        const token = this.tokens[this.at];
        const word = this.word();
        if (token.startsWith("'")) return { literal: word };
        if (word !== 'Array' && word !== 'Promise') return { name: word };
        this.need('<');
        const type = this.type();
        this.need('>');
        return word === 'Array' ? { array: type } : type;
    }
    fields() {
        const fields = new Map();
        while (!this.is('}')) {
            const name = this.word();
            const optional = this.is('?');
            this.need(':');
            fields.set(name, { optional, type: this.type() });
            this.need(';');
        }
        return fields;
    }
    named(name) {
        const isKind = (kind) => (token, at) => token === kind && this.tokens[at + 1] === name;
        if (this.tokens.some(isKind('interface'))) {
            this.seek('interface', name, '{');
            return { fields: this.fields() };
        }
        this.seek('type', name, '=');
        return this.type();
    }
    methods(name) {
        const methods = new Map();
        this.seek('class', name, 'extends', 'ApiBase', '{');
        while (!this.is('}')) {
            const method = this.word();
            this.need('(');
            while (!this.is(')')) {
                this.word();
                this.is('?');
                this.need(':');
                this.type();
                this.is(',');
            }
            this.need(':');
            methods.set(method, this.type());
            this.need(';');
        }
        return methods;
    }
}

const main = createRequire(import.meta.url).resolve('@ttab/api-client');
const source = readFileSync(new URL('api.d.ts', pathToFileURL(main)), 'utf8');

/** The methods that the library declares for the class `name`, each with the type it answers. */
export const methodsOf = (name) => new Parser(source).methods(name);

/** The type that the library exports as `name`. */
export const typeOf = (name) => new Parser(source).named(name);

/** Fails unless `value` has `type`: required fields, types, enums, no unknown field. */
export function conform(type, value, path) {
    if (type.any) {
        const allowed = type.any.map((option) => option.literal);
        assert(allowed.includes(value), `${path} is ${JSON.stringify(value)}, not of ${allowed}`);
    } else if (type.literal) {
        assert.equal(value, type.literal, path);
    } else if (type.array) {
        assert(Array.isArray(value), `${path} is not an array`);
        value.forEach((element, index) => conform(type.array, element, `${path}[${index}]`));
    } else if (['string', 'number', 'boolean'].includes(type.name)) {
        assert.equal(typeof value, type.name, `${path} is ${JSON.stringify(value)}`);
    } else if (type.name) {
        conform(typeOf(type.name), value, path);
    } else if (type.fields.size > 0) {
        const object = typeof value === 'object' && value !== null && !Array.isArray(value);
        assert(object, `${path} is not an object`);
        conformFields(type.fields, value, path);
    }
}

function conformFields(fields, value, path) {
    for (const name of Object.keys(value)) assert(fields.has(name), `${path}.${name} is unknown`);
    for (const [name, { optional, type }] of fields) {
        const own = `${path}.${name}`;
        assert(optional || name in value, `${own} is missing`);
        if (!(name in value)) continue;
        conform(type, value[name], own);
        const held = FORMATS[name]?.(value[name]) ?? true;
        assert(held, `${own} is ${JSON.stringify(value[name])}`);
    }
}
