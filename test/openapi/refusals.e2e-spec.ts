import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { exampleOf } from '@slipway/api/openapi/document-passes.js';
import { type DocumentedOperation, operationsOf, type Schemas } from '@slipway/api/openapi/operations.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { asList, exampleBodyOf, placesOf } from '../support/request-places.js';
import { addressOf, committedDocument, resolvedDocument } from '../support/resolved-document.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';
import { type JsonSchema, schemaProblems } from '../support/schema-problems.js';

/** What the service takes as a request at all; a longer text is refused before anything looks at it. */
const MAX_BODY = 1024 * 1024;
/** What a column of whole numbers holds. */
const MAX_INTEGER = 2 ** 31 - 1;
/** What the service takes, or refuses for another reason that it finds first. */
const EXCEPTIONS = [
  // Shown in responses, and ignored where a form sends it back.
  /^(POST|PATCH) \/api\/(v1\/|organizations\/.*\/)?settings .*"provider_tokens_set"/,
  // Any text may be an id, and there is nothing with this one.
  /^POST \/api\/v1\/webhooks\/conversations .*"(of-no-use|!)"/,
  /^GET .*\/events\/stream last_event_id=(%21|of-no-use)$/,
  // What is missing beside it depends on the type, which is missing.
  /^PATCH \/api\/automation\/v1\/\{id\} .*"trigger":\{"on":/,
  // OAuth answers 400 in a form of its own (RFC 6749, section 5.2).
  /^POST \/oauth\/device\/token /,
];
/** Says `missing` of any id that is none. */
const OWN_TYPES = /^POST \/api\/v1\/webhooks\/conversations /;

/** A request that the document forbids, and where it is wrong. */
interface Refused {
  what: string;
  loc: string[];
  query: [name: string, value: string][];
  body: unknown;
  /** What clients tell the problem by, where the document says enough to know it. */
  type: string | null;
}

const document = committedDocument();
const resolved = resolvedDocument(document);
const operations = operationsOf(resolved);
const schemas = resolved.components?.schemas as Record<string, JsonSchema>;
const places = Map.groupBy(placesOf(document), ({ operation }) => operation);
/** What several routes take alike is tried with all values at the first one, and with one value at the others. */
const tried = new Set<string>();
const rows = operations
  .map((operation) => ({
    name: operation.name,
    requests: [...wrongQueries(operation), ...wrongBodies(operation)].filter(
      ({ what }) => !EXCEPTIONS.some((exception) => exception.test(`${operation.name} ${what}`)),
    ),
  }))
  .filter(({ requests }) => requests.length > 0);

let service: TestApp;
let sandbox: Record<string, string>;

beforeAll(async () => {
  service = await createTestApp();
  sandbox = (await insertSandboxRow(service.dataSource, service.admin.id)).headers;
});

afterAll(() => service.close());

describe('what openapi.json forbids', () => {
  it.each(rows)('$name refuses, and says where and of which type', async ({ name, requests }) => {
    const wrong: unknown[] = [];
    for (const { what, loc, query, body, type } of requests) {
      const { status, text } = await send(name, query, body);
      const found = status === 422 ? asList(Object(JSON.parse(text)).detail) : [];
      const isTold = found.some((each) => {
        const { loc: at, type: said } = Object(each);
        return isAt(asList(at).map(String), loc) && (type === null || said === type);
      });
      if (status !== 413 && !isTold) {
        wrong.push([what, type, status, text]);
      }
    }

    expect(wrong).toEqual([]);
  });

  it('is tried on every operation that takes a body or a query with rules', () => {
    expect(rows.length).toBeGreaterThan(70);
    const all = rows.flatMap(({ requests }) => requests);
    expect(all.length).toBeGreaterThan(600);
    expect(all.filter(({ type }) => type !== null).length).toBeGreaterThan(400);
  });
});

/** Whether a problem is at a place or below; one in a list or an object may be that of the whole. */
function isAt(found: string[], place: string[]): boolean {
  const depth = Math.max(2, Math.min(found.length, place.length));
  return found.slice(0, depth).join('.') === place.slice(0, depth).join('.');
}

function wrongQueries({ name, operation }: DocumentedOperation): Refused[] {
  const parameters = (operation.parameters ?? []) as {
    name: string;
    in: string;
    required?: boolean;
    schema: JsonSchema;
  }[];
  const needed = parameters.filter((each) => each.in === 'query' && each.required === true);
  const given = needed.map((each): [string, string] => [each.name, String(each.schema['example'])]);
  const without = (left: string): Refused['query'] => given.filter(([each]) => each !== left);
  const body = exampleBodyOf({ name, operation });
  const wrong = (places.get(name) ?? []).flatMap(({ name: at, query: member, schema }) =>
    member === null
      ? []
      : wrongValues(member, schema, (value) => value !== null && !isTakenFromQuery(textsOf(value), schema))
          .map(textsOf)
          .map((texts) => ({
            member,
            type: texts.length === 1 ? typeOf(texts[0], at, schema) : null,
            query: [...without(member), ...texts.map((text): [string, string] => [member, text])],
          })),
  );
  return [
    ...wrong,
    ...needed.map((each) => ({ member: each.name, type: 'missing', query: without(each.name) })),
  ].map(({ member, type, query }) => ({
    what: new URLSearchParams(query).toString().slice(0, 100),
    loc: ['query', member],
    query,
    body,
    type,
  }));
}

function wrongBodies(documented: DocumentedOperation): Refused[] {
  const example = exampleBodyOf(documented);
  const of = (places.get(documented.name) ?? []).filter(({ path }) => path !== null);
  const [whole] = of;
  if (!isJsonObject(example) || !whole) {
    return [];
  }
  const shown = (at: string[]): unknown => {
    const place = of.find(({ path }) => path?.join('.') === at.join('.'));
    return place && shownOf(place.schema);
  };
  return of.flatMap(({ name: at, path, schema }) => {
    const refused = (to: string[], value: unknown, type: string | null): Refused[] => {
      const body = withValue(example, to, value, shown);
      const what = JSON.stringify(body).slice(0, 100);
      return schemaProblems(body, whole.schema, schemas).length > 0
        ? [{ what, loc: ['body', ...to], query: [], body, type }]
        : [];
    };
    const to = path ?? [];
    const isRefused = (value: unknown): boolean => refused(to, value, null).length > 0;
    const values = to.length === 0 ? [] : wrongValues(to.join('.'), schema, isRefused);
    return [
      ...values.flatMap((value) => refused(to, value, typeOf(value, at, schema))),
      ...asList(schema['required']).flatMap((member) =>
        refused([...to, String(member)], undefined, 'missing'),
      ),
    ];
  });
}

function textsOf(value: unknown): string[] {
  return asList(value).map(String);
}

/** A query has texts alone: one may stand for a list of one, and none for a list of none. */
function isTakenFromQuery(texts: string[], schema: JsonObject): boolean {
  const isList = asList(schema['type']).includes('array');
  return (
    texts[0] === '[object Object]' || schemaProblems(isList ? texts : texts[0], schema, schemas).length === 0
  );
}

/** Values of a member that break its schema: of another type or form, and beyond each of its bounds by one. */
function wrongValues(member: string, schema: JsonObject, isWrong: (value: unknown) => boolean): unknown[] {
  const key = `${member} ${JSON.stringify(schema)}`;
  const most = tried.has(key) ? 1 : Infinity;
  tried.add(key);
  const { type, minimum, maximum, maxLength, maxItems, maxProperties, items } = schema;
  const types = asList(type);
  const of = isJsonObject(items) ? items : {};
  const many = <T>(most: number, make: (index: number) => T): T[] =>
    Array.from({ length: most + 1 }, (_none, index) => make(index));
  const values = [
    types.includes('object') || types.includes('array') ? 5 : {},
    null,
    '',
    // One of no form, and one of letters.
    ...firstRefused(['!', 'of-no-use'], schema),
    ...(typeof minimum === 'number' ? [minimum - 1] : []),
    ...(typeof maximum === 'number' ? [maximum + 1] : []),
    ...(typeof maxLength === 'number' ? ['a'.repeat(Math.min(maxLength, MAX_BODY) + 1)] : []),
    ...(of['enum'] === undefined ? [] : [['of-no-use']]),
    ...(typeof maxItems === 'number' && maxItems <= 1_000
      ? [many(maxItems, (index) => (of['type'] === 'string' ? `a${index}` : shownOf(of)))]
      : []),
    ...(typeof maxProperties === 'number'
      ? [Object.fromEntries(many(maxProperties, (index) => [`A${index}`, 'x']))]
      : []),
  ];
  const isBroken = (value: unknown): boolean =>
    schemaProblems(value, schema, schemas).length > 0 && isWrong(value);
  return values.reduce<unknown[]>(
    (wrong, value) => (wrong.length < most && isBroken(value) ? [...wrong, value] : wrong),
    [],
  );
}

/** Of a value at a place; null where the document leaves it open, such as among several forms. */
function typeOf(value: unknown, at: string, schema: JsonObject): string | null {
  const { type, format, enum: words, minimum, maximum } = schema;
  const of = format === 'uuid' ? 'uuid' : format === 'date-time' ? 'datetime' : null;
  const isText = typeof value === 'string';
  if (at.includes('|') || OWN_TYPES.test(at) || value === null) {
    return null;
  }
  if (isText && (words !== undefined || of !== null)) {
    return of === null ? 'enum' : `${of}_parsing`;
  }
  if (isText || typeof value === 'number') {
    const isBeyond = (bound: unknown, step: number): boolean =>
      typeof bound === 'number' && value !== '' && Number(value) === bound + step;
    const tooMuch = maximum === MAX_INTEGER ? 'int_parsing_size' : 'less_than_equal';
    return isBeyond(minimum, -1) ? 'greater_than_equal' : isBeyond(maximum, 1) ? tooMuch : null;
  }
  const isObject = !Array.isArray(value) && words === undefined && asList(type).includes('string');
  return isObject ? `${of ?? 'string'}_type` : null;
}

function firstRefused(values: unknown[], schema: JsonObject): unknown[] {
  return values.filter((value) => schemaProblems(value, schema, schemas).length > 0).slice(0, 1);
}

function shownOf(schema: JsonObject): unknown {
  return exampleOf(schema, schemas as Schemas);
}

/** The same with another value at a place; what is not there on the way is as its schema shows it. */
function withValue(given: unknown, at: string[], value: unknown, shown: (at: string[]) => unknown): unknown {
  const set = (old: unknown, depth: number): unknown => {
    const name = at[depth];
    if (name === undefined) {
      return value;
    }
    const present = old ?? shown(at.slice(0, depth));
    if (name === '0') {
      return [set(asList(present)[0], depth + 1)];
    }
    const object = isJsonObject(present) ? present : {};
    return { ...object, [name]: set(object[name], depth + 1) };
  };
  return set(given, 0);
}

async function send(
  name: string,
  query: Refused['query'],
  body: unknown,
): Promise<{ status: number; text: string }> {
  // Nothing has this name.
  const { method, path } = addressOf(name, 'nothing', service.admin.id);
  const response = await fetch(`${service.url}${path}?${new URLSearchParams(query).toString()}`, {
    method,
    headers: {
      ...(name.startsWith('POST /api/v1/webhooks/') ? sandbox : service.admin.headers),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}
