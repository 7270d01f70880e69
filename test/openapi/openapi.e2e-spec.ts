import { beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { exampleOf } from '@slipway/api/openapi/document-passes.js';
import type { DocumentedOperation, Operation, Schema, Schemas } from '@slipway/api/openapi/operations.js';
import { WEBHOOK_EVENT_TYPES } from '../../src/outbound-webhooks/webhook-event.js';
import { ADD_GIT_PROVIDERS_EXAMPLES, AddGitProvidersDto } from '../../src/settings/secrets/git-tokens.dto.js';
import { STOCK_EVENTS } from '../fakes/stock-agent-samples.js';
import { parseBody } from '../support/body-problems.js';
import { committedDocument, resolvedOperations, wholeSchemas } from '../support/resolved-document.js';
import { schemaProblems, type JsonSchema } from '../support/schema-problems.js';
import { useTestApp } from '../support/use-test-app.js';

interface Media {
  schema: JsonSchema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

const service = useTestApp({ GITHUB_API_URL: 'http://127.0.0.1:1' });
let document: OpenAPIObject;
let operations: DocumentedOperation[];
/** Webhooks, by their types. */
let sent: DocumentedOperation[];
let schemas: Record<string, JsonSchema>;

beforeAll(async () => {
  document = (await (await fetch(`${service.url}/openapi.json`)).json()) as OpenAPIObject;
  operations = resolvedOperations(document);
  sent = Object.entries(document.webhooks ?? {}).flatMap(([name, item]) =>
    'post' in item && item.post ? [{ name, operation: item.post }] : [],
  );
  schemas = document.components?.schemas as Record<string, JsonSchema>;
});

/** One operation under two addresses. */
const GIT_PROVIDER_OPERATIONS = ['POST /api/add-git-providers', 'POST /api/v1/secrets/git-providers'];

describe('openapi.json', () => {
  it('is as it is served (npm run openapi writes it)', () => {
    expect(document).toEqual(committedDocument());
  });

  it('describes every operation, under a name of its own', () => {
    expect(operations.length).toBeGreaterThan(15);
    const lacking = ({ operation: { summary, description, tags } }: DocumentedOperation): boolean =>
      !summary || !description || !tags?.length;
    expect(operations.filter(lacking).map(({ name }) => name)).toEqual([]);
    const ids = [...operations, ...sent].map(({ operation }) => operation.operationId ?? '');

    expect(ids.filter((id) => !/^[a-z0-9_]+$/.test(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain('get_suggested_tasks_api_user_suggested_tasks_get');
  });

  it('gives every tag a text', () => {
    const used = new Set([...operations, ...sent].flatMap(({ operation }) => operation.tags ?? []));
    const described = (document.tags ?? []).filter(({ description }) => description).map(({ name }) => name);

    expect(described.toSorted()).toEqual([...used].toSorted());
  });

  it("begins with a newcomer's requests, which have a group of their own in this order", () => {
    const [first, second] = document.tags ?? [];
    const named = operations.filter(({ operation }) => operation.tags?.includes('Start here'));

    expect([first?.name, second?.name]).toEqual(['Start here', 'Conversations']);
    expect([...(first?.description ?? '').matchAll(/^\d\. `([^`]+)`/gm)].map(([, name]) => name)).toEqual(
      named.map(({ name }) => name),
    );
    expect(named).toHaveLength(3);
  });

  it('has short names, except where clients of OpenHands know a longer one', () => {
    const long = operations
      .map(({ operation }) => operation.operationId ?? '')
      .filter((id) => id.length > 40);

    // As FastAPI makes them of a function, its address and its method.
    expect(long.filter((id) => !/_api_.+_(get|post|put|patch|delete)$/.test(id))).toEqual([]);
  });

  it('says of each deprecated operation which one replaces it', () => {
    const deprecated = operations.filter(({ operation }) => operation.deprecated);
    const present = operations.filter(({ operation }) => !operation.deprecated).map(({ name }) => name);
    const replaced = deprecated.filter(({ operation: { description = '' } }) =>
      present.some((name) => description.includes(`\`${name}\``)),
    );

    expect(replaced).toEqual(deprecated);
    expect(deprecated.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['GET /api/conversations', 'POST /api/settings', 'GET /api/user/info']),
    );
    // The pages of V1 have neither filters nor an ETag.
    expect(
      present.filter((name) => / \/api\/(conversations|settings|secrets|options|user)/.test(name)),
    ).toEqual(['GET /api/user/suggested-tasks']);
  });

  it('prefills nothing but what a request needs, and settings with one harmless member', () => {
    const bodies = operations.flatMap(({ name, operation }) =>
      mediaOf(operation)
        .filter(({ place }) => place === 'body')
        .map(({ media }) => ({ name, media })),
    );
    const prefilled = new Map(bodies.map(({ name, media }) => [name, examplesOf(media)[0]]));
    const superfluous = bodies.filter(({ media }) => {
      // A body that may be left out is that or null.
      const { $ref } = media.schema.anyOf?.[0] ?? media.schema;
      const { required = [] } = schemas[$ref?.split('/').at(-1) ?? ''] ?? media.schema;
      // Several examples are written for the route; one alone is made of its schema.
      return media.examples === undefined && media.schema['type'] !== 'array'
        ? Object.keys(Object(media.example)).some((member) => !required.includes(member))
        : false;
    });

    expect(prefilled.get('POST /api/settings')).toEqual({ language: 'en' });
    expect(prefilled.get('POST /api/v1/settings')).toEqual({ language: 'en' });
    expect(superfluous.map(({ name }) => name)).toEqual([]);
    expect([...prefilled].filter(([, body]) => body === undefined)).toEqual([]);
  });

  it('writes null as a type, has no empty texts and no names of classes', () => {
    const text = JSON.stringify(document);

    expect(text.match(/"nullable"|"(summary|description)":""|Dto"/g)).toBeNull();
    // OpenAPI Generator's Python client ends with an error at a member that is null and nothing else.
    expect(text.match(/"\w+":\{"type":"null"/g)).toBeNull();
  });

  it('has no part in its components that nothing refers to, and no reference that leads nowhere', () => {
    const { securitySchemes: _named, ...components } = document.components ?? {};
    const parts = Object.entries(components).flatMap(([kind, all]) =>
      Object.keys(all).map((name) => `#/components/${kind}/${name}`),
    );
    const references = new Set<unknown>();
    JSON.stringify(document, (key, value: unknown) => {
      references.add(key === '$ref' ? value : undefined);
      return value;
    });
    references.delete(undefined);

    expect(parts.filter((part) => !references.has(part))).toEqual([]);
    expect([...references].filter((reference) => !parts.includes(String(reference)))).toEqual([]);
  });

  it('has one choice of schemas at a place, and no classes of JavaScript', () => {
    const places: string[] = [];
    JSON.stringify(schemas, (name, value: unknown) => {
      const choices = Object.keys(Object(value)).filter((key) => ['oneOf', 'anyOf', 'allOf'].includes(key));
      if (choices.length > 1) {
        places.push(`${name}: ${choices.join()}`);
      }
      return value;
    });

    expect(places).toEqual([]);
    expect(['Array', 'Map', 'Object', 'Set'].filter((name) => name in schemas)).toEqual([]);
  });

  it('has no schema that every value of itself would have to hold once more', () => {
    const endless = Object.entries(schemas).filter(([name, { properties = {}, required = [] }]) =>
      required.some((member) => {
        const { $ref, allOf = [] } = properties[member] ?? {};
        return [$ref, ...allOf.map((each) => each.$ref)].includes(`#/components/schemas/${name}`);
      }),
    );

    expect(endless.map(([name]) => name)).toEqual([]);
  });

  it('documents every kind of error that an operation can end in', () => {
    const missing = operations.flatMap(({ name, operation }) => {
      const takesInput = operation.requestBody !== undefined || hasCheckedParameters(operation);
      const expected = [
        '500',
        ...(operation.security ? ['401', '429', '503'] : []),
        ...(operation.requestBody ? ['413', '415'] : []),
        ...(takesInput ? ['422'] : []),
      ];
      return expected
        .filter((status) => !(status in operation.responses))
        .map((status) => `${name} ${status}`);
    });

    expect(missing).toEqual([]);
  });

  it('names the id of the request in every answer, and when to come back where there is a wait', () => {
    for (const { operation } of operations) {
      for (const [status, response] of Object.entries(operation.responses)) {
        const headers = response && 'headers' in response ? Object.keys(response.headers ?? {}) : [];

        expect(headers).toContain('X-Request-Id');
        expect(headers.includes('Retry-After')).toBe(['429', '503'].includes(status));
      }
    }
  });

  it('shows an example of every body, answer and parameter, and each fits its schema', () => {
    const problems = operations.flatMap(({ name, operation }) => [
      ...mediaOf(operation).flatMap(({ place, media }) =>
        shownExamplesOf(media).flatMap((example) =>
          schemaProblems(example, media.schema, schemas).map((text) => `${name} ${place}: ${text}`),
        ),
      ),
      ...mediaOf(operation)
        .filter(({ media }) => shownExamplesOf(media).length === 0)
        .map(({ place }) => `${name} ${place}: no example`),
      ...parametersOf(operation).flatMap((parameter) => {
        const example = parameter.schema.example ?? parameter.schema.default;
        return example === undefined
          ? [`${name} ${parameter.name}: no example`]
          : schemaProblems(example, parameter.schema, schemas).map((text) => `${name}: ${text}`);
      }),
    ]);

    expect(problems).toEqual([]);
  });

  it('shows errors with the status they come with', () => {
    const wrong = operations.flatMap(({ name, operation }) =>
      mediaOf(operation)
        .filter(({ media }) => media.schema.$ref === '#/components/schemas/Problem')
        .flatMap(({ place, media }) => examplesOf(media).map((example) => ({ place, example })))
        .filter(({ place, example }) => String((example as { status: number }).status) !== place)
        .map(({ place }) => `${name} ${place}`),
    );

    expect(wrong).toEqual([]);
  });

  it('documents problems as the type that names them and as JSON', () => {
    const types = operations.flatMap(({ name, operation }) =>
      mediaOf(operation)
        .filter(({ media }) => media.schema.$ref === '#/components/schemas/Problem')
        .map(({ place, type }) => ({ response: `${name} ${place}`, type })),
    );
    const byResponse = Map.groupBy(types, ({ response }) => response);

    expect(byResponse.size).toBeGreaterThan(100);
    for (const documented of byResponse.values()) {
      expect(documented.map(({ type }) => type)).toEqual(['application/json', 'application/problem+json']);
    }
  });

  it('describes every member of the problems that it shows', () => {
    const members = ['Problem', 'ValidationProblem'].flatMap((name) =>
      Object.keys(schemas[name]?.properties ?? {}),
    );
    const shown = Object.values(document.components?.examples ?? {}).map((example) =>
      'value' in example ? (example.value as object) : {},
    );
    const problems = shown.filter((value) => 'code' in value && 'status' in value);

    expect(problems.length).toBeGreaterThan(10);
    expect(
      problems.flatMap((problem) => Object.keys(problem)).filter((name) => !members.includes(name)),
    ).toEqual([]);
  });

  it('describes each kind of event that agent servers write', () => {
    const event = { $ref: '#/components/schemas/Event' };
    const wrong = { ...STOCK_EVENTS['ActionEvent'], tool_call: null };

    expect(Object.values(STOCK_EVENTS).flatMap((each) => schemaProblems(each, event, schemas))).toEqual([]);
    expect(schemaProblems(wrong, event, schemas)).not.toEqual([]);
    expect(schemas['Event']?.['discriminator']).toEqual({ propertyName: 'kind' });
    expect(schemas['Event']?.oneOf?.map(({ $ref }) => $ref?.split('/').at(-1)).toSorted()).toEqual(
      Object.keys(STOCK_EVENTS).toSorted(),
    );
  });

  it('describes what is sent to webhook endpoints', () => {
    expect(sent.map(({ name }) => name)).toEqual([...WEBHOOK_EVENT_TYPES, 'test']);
  });

  it('has webhooks in groups of their own, as OpenAPI Generator has one class for each group of either', () => {
    const ofRoutes = new Set(operations.flatMap(({ operation }) => operation.tags ?? []));

    expect(sent.filter(({ operation }) => operation.tags?.some((tag) => ofRoutes.has(tag)))).toEqual([]);
  });

  it('shows bodies of git providers that the rules accept', async () => {
    for (const { value } of Object.values(ADD_GIT_PROVIDERS_EXAMPLES)) {
      expect(await parseBody(AddGitProvidersDto, JSON.stringify(value))).toBeInstanceOf(AddGitProvidersDto);
    }
  });

  it('shows bodies and queries that the service takes, and answers as documented', async () => {
    const calls = operations
      // One of its bodies names a host of the network; what the rules make of them is tested above.
      .filter(({ name }) => !GIT_PROVIDER_OPERATIONS.includes(name))
      .flatMap(({ name, operation }) => callsOf(name, operation));
    const problems: string[] = [];
    const send = async ({ name, method, path, body, responses }: (typeof calls)[number]): Promise<void> => {
      const response = await fetch(`${service.url}${path}`, {
        method,
        headers: {
          ...service.admin.headers,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const documented = responses[String(response.status)];
      const type = response.headers.get('content-type')?.split(';')[0] ?? '';
      const schema = documented && 'content' in documented ? documented.content?.[type]?.schema : undefined;
      const isWrong = response.status === 422 || text.includes('"code":"invalid_request"');
      if (isWrong || !documented || (text !== '' && !schema)) {
        problems.push(`${name}: ${response.status} ${text}`);
      } else if (schema) {
        problems.push(
          ...schemaProblems(JSON.parse(text), schema as JsonSchema, schemas).map((p) => `${name}: ${p}`),
        );
      }
    };
    // What reads waits for hosts that nobody reaches: all of it between two changes at once.
    let reads: Promise<void>[] = [];
    for (const call of calls) {
      if (call.method === 'GET') {
        reads.push(send(call));
      } else {
        await Promise.all(reads);
        reads = [];
        await send(call);
      }
    }
    await Promise.all(reads);

    expect(problems).toEqual([]);
    expect(calls.length).toBeGreaterThan(20);
  });
});

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: JsonSchema;
}

function parametersOf(operation: Operation): Parameter[] {
  return (operation.parameters ?? []) as Parameter[];
}

/** A header is taken as it comes. */
function hasCheckedParameters(operation: Operation): boolean {
  return parametersOf(operation).some((parameter) => parameter.in !== 'header');
}

function mediaOf(operation: Operation): { place: string; type: string; media: Media }[] {
  return Object.entries({ body: operation.requestBody, ...operation.responses }).flatMap(([place, part]) =>
    part && 'content' in part
      ? Object.entries((part.content ?? {}) as Record<string, Media>).map(([type, media]) => ({
          place,
          type,
          media,
        }))
      : [],
  );
}

function examplesOf({ example, examples }: Media): unknown[] {
  return example === undefined ? Object.values(examples ?? {}).map(({ value }) => value) : [example];
}

/** What readers of the document show: where it has no example, they make one of the schema. */
function shownExamplesOf(media: Media): unknown[] {
  const given = examplesOf(media);
  const made =
    given.length === 0 ? exampleOf(media.schema as Schema, wholeSchemas(schemas as Schemas)) : undefined;
  return made === undefined ? given : [made];
}

interface Call {
  name: string;
  method: string;
  path: string;
  body: unknown;
  responses: Operation['responses'];
}

/** The requests that the examples of an operation stand for. */
function callsOf(name: string, operation: Operation): Call[] {
  const [method = '', template = ''] = name.split(' ');
  const value = (parameter: Parameter): string => {
    const example = parameter.schema.example ?? parameter.schema.default;
    return encodeURIComponent(String(Array.isArray(example) ? example[0] : example));
  };
  const parameters = parametersOf(operation);
  const path = parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce((text, parameter) => text.replace(`{${parameter.name}}`, value(parameter)), template);
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const given = (some: Parameter[]): string =>
    some
      .map((parameter, index) => `${index === 0 ? '?' : '&'}${parameter.name}=${value(parameter)}`)
      .join('');
  const required = query.filter((parameter) => parameter.required === true);
  const optional = query.filter((parameter) => parameter.required !== true);
  const paths = [
    `${path}${given(required)}`,
    ...optional.map((parameter) => `${path}${given([...required, parameter])}`),
  ];
  const bodies = mediaOf(operation)
    .filter(({ place }) => place === 'body')
    .flatMap(({ media }) => examplesOf(media));
  const { responses } = operation;
  return bodies.length > 0
    ? bodies.map((body) => ({ name, method, path, body, responses }))
    : paths.map((address) => ({ name, method, path: address, body: undefined, responses }));
}
