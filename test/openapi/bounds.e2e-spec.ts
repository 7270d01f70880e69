import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { resolvedOperations } from '../support/resolved-document.js';

const BOUNDED_FORMATS = ['uuid', 'date-time', 'date', 'time', 'ipv4', 'ipv6'];
/** What the service takes as a request at all; a longer text is refused before anything looks at it. */
const MAX_BODY = 1024 * 1024;

/** A value of a request: where its schema stands, and how to send one of its kind. */
interface Place {
  /** Such as `POST /api/settings body.mcp_config.sse_servers`. */
  name: string;
  operation: string;
  schema: JsonObject;
  /** Names that lead to it from the body; null below lists and maps, and for parameters. */
  path: string[] | null;
  query: string | null;
}

let service: TestApp;
let places: Place[];
const bodies = new Map<string, JsonObject>();

beforeAll(async () => {
  service = await createTestApp();
  const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as OpenAPIObject;
  const schemas = Object(document.components?.schemas) as Record<string, JsonObject>;
  places = resolvedOperations(document).flatMap(({ name, operation }) => {
    const walk = (given: unknown, at: string, path: string[] | null, query: string | null): Place[] => {
      const names = new Set<string>();
      let schema: JsonObject = isJsonObject(given) ? given : {};
      while (typeof schema['$ref'] === 'string' && !names.has(schema['$ref'])) {
        names.add(schema['$ref']);
        schema = schemas[schema['$ref'].split('/').at(-1) ?? ''] ?? {};
      }
      const choices = ['oneOf', 'anyOf', 'allOf'].flatMap((key) => asList(schema[key]));
      const { properties, additionalProperties: values, propertyNames: keys, items } = schema;
      return [
        { name: `${name} ${at}`, operation: name, schema, path, query },
        ...choices.flatMap((choice) => walk(choice, `${at}|`, path, null)),
        ...Object.entries(Object(properties)).flatMap(([member, each]) =>
          walk(each, `${at}.${member}`, path && [...path, member], null),
        ),
        ...(isJsonObject(values) ? walk(values, `${at}{}`, null, null) : []),
        ...(isJsonObject(keys) ? walk({ type: 'string', ...keys }, `${at}{key}`, null, null) : []),
        ...(isJsonObject(items) ? walk(items, `${at}[]`, null, null) : []),
      ];
    };
    const content = Object(Object(operation.requestBody).content) as Record<string, JsonObject>;
    const body = content['application/json'];
    const [example] = Object.values(Object(body?.['examples'])) as JsonObject[];
    const whole = body?.['example'] ?? example?.['value'];
    if (isJsonObject(whole)) {
      bodies.set(name, whole);
    }
    return [
      ...Object.values(content).flatMap((media) => walk(media['schema'], 'body', [], null)),
      ...(operation.parameters ?? []).flatMap((parameter) =>
        'in' in parameter
          ? walk(
              parameter.schema,
              `${parameter.in} ${parameter.name}`,
              null,
              parameter.in === 'query' ? parameter.name : null,
            )
          : [],
      ),
    ];
  });
});

afterAll(() => service.close());

describe('what a request may hold', () => {
  it('is bounded: every text, list and map', () => {
    const unbounded = places.filter(({ schema }) => !isBounded(schema)).map(({ name }) => name);

    expect(places.length).toBeGreaterThan(500);
    expect(unbounded).toEqual([]);
  });

  it('is refused beyond its bounds, in bodies', async () => {
    const sendable = places.flatMap((place) => {
      const example = bodies.get(place.operation);
      // Those take the key of a sandbox.
      const isOwn = !place.operation.startsWith('POST /api/v1/webhooks/');
      const value = isOwn && example && place.path?.length ? beyond(place.schema) : null;
      return example && value !== null ? [{ ...place, example, value }] : [];
    });
    const answers = await inTurn(sendable, ({ operation, path, example, value }) =>
      send(operation, JSON.stringify(withValue(example, path ?? [], value))),
    );

    expect(sendable.length).toBeGreaterThan(60);
    expect(answers.filter(({ status }) => ![413, 422].includes(status))).toEqual([]);
  });

  it('is refused beyond its bounds, in queries', async () => {
    const sendable = places.flatMap((place) => {
      const value = place.query === null ? null : beyond(place.schema);
      return typeof value === 'string' ? [{ ...place, value }] : [];
    });
    const answers = await inTurn(sendable, ({ operation, query, value }) =>
      send(`${operation}?${query}=${value}`, null),
    );

    expect(sendable.length).toBeGreaterThan(20);
    expect(answers.filter(({ status }) => status !== 422)).toEqual([]);
  });
});

async function inTurn<P extends Place>(
  all: readonly P[],
  ask: (place: P) => Promise<number>,
): Promise<{ name: string; status: number }[]> {
  const answers: { name: string; status: number }[] = [];
  for (const place of all) {
    answers.push({ name: place.name, status: await ask(place) });
  }
  return answers;
}

async function send(operation: string, body: string | null): Promise<number> {
  const [method = '', path = ''] = operation.split(' ');
  // Nothing has this name.
  const response = await fetch(`${service.url}${path.replaceAll(/\{\w+\}/g, 'nothing')}`, {
    method,
    headers: { ...service.admin.headers, ...(body !== null && { 'Content-Type': 'application/json' }) },
    body,
  });
  await response.arrayBuffer();
  return response.status;
}

function isBounded(schema: JsonObject): boolean {
  const types = asList(schema['type'] ?? []);
  const { enum: words, const: word, format, pattern, properties, additionalProperties: others } = schema;
  const has = (bound: string): boolean => typeof schema[bound] === 'number';
  if (words !== undefined || word !== undefined) {
    return true;
  }
  const isOpen = properties === undefined || (others !== undefined && others !== false);
  return (
    (!types.includes('string') ||
      has('maxLength') ||
      BOUNDED_FORMATS.includes(String(format)) ||
      (typeof pattern === 'string' && /^\^.*\$$/.test(pattern) && !/[*+]|\{\d+,\}/.test(pattern))) &&
    (!types.includes('array') || has('maxItems')) &&
    (!types.includes('object') || !isOpen || has('maxProperties'))
  );
}

/** A value that is beyond the bound of its schema by one; null: it has none that is tried. */
function beyond({ type, maxLength, maxItems, maxProperties, items }: JsonObject): unknown {
  const types = asList(type);
  if (types.includes('string') && typeof maxLength === 'number') {
    return 'a'.repeat(Math.min(maxLength, MAX_BODY) + 1);
  }
  if (types.includes('array') && typeof maxItems === 'number' && maxItems <= 1_000) {
    const isText = isJsonObject(items) && items['type'] === 'string';
    return Array.from({ length: maxItems + 1 }, (_none, index) => (isText ? `a${index}` : {}));
  }
  if (types.includes('object') && typeof maxProperties === 'number') {
    return Object.fromEntries(
      Array.from({ length: maxProperties + 1 }, (_none, index) => [`A${index}`, 'x']),
    );
  }
  return null;
}

function withValue(object: JsonObject, [name = '', ...rest]: string[], value: unknown): JsonObject {
  const member = object[name];
  const changed = rest.length === 0 ? value : withValue(isJsonObject(member) ? member : {}, rest, value);
  return { ...object, [name]: changed };
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}
