import { readFileSync } from 'node:fs';
import { jsonText } from '@slipway/common/json-access.js';
import type { FakeRequest } from '../../../../test/fakes/fake-server.js';
import { type JsonSchema, schemaProblems } from '../../../../test/support/schema-problems.js';

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: JsonSchema;
}

interface Operation {
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Record<string, { schema: JsonSchema }> };
}

interface Published {
  info: { version: string };
  'x-routes': string[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, JsonSchema> };
}

interface Route {
  /** Published name: `POST /api/conversations/{conversation_id}/run`. */
  name: string;
  operation: Operation;
  /** What the request has in the place of each name in braces. */
  places: Record<string, string>;
}

const FILE = new URL('../../../../test/fixtures/agent-server.openapi.json', import.meta.url);
const { info, paths, components, 'x-routes': routes }: Published = JSON.parse(readFileSync(FILE, 'utf8'));

export const REFERENCE_VERSION = info.version;
/** Everything that it publishes: `POST /api/conversations/{conversation_id}/run`. */
export const REFERENCE_ROUTES: readonly string[] = routes;

const JSON_TYPE = 'application/json';

/**
 * The stock server drops what it has no name for without a word, so for what is sent there every object is closed: a
 * unknown member has no effect.
 */
const SCHEMAS = Object.fromEntries(
  Object.entries(components.schemas).map(([name, schema]) => [
    name,
    schema.properties && schema.additionalProperties === undefined
      ? { ...schema, additionalProperties: false }
      : schema,
  ]),
);

/** Lists where a value is not what the stock agent server publishes under this name. */
export function publishedProblems(name: string, value: unknown): string[] {
  return schemaProblems(value, { $ref: `#/components/schemas/${name}` }, SCHEMAS, name);
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/;
/** Members of events that may hold anything, or null. */
const FREE = ['value', 'raw_input', 'raw_output', 'data', 'mcp_tool', 'annotations', 'meta', 'command'];

/** Lists where an event is not as published, or not as strict clients read it: without null, and with an id and a time. */
export function eventProblems(event: unknown): string[] {
  const text = JSON.stringify(event, (name, value: unknown) => (FREE.includes(name) ? '' : value));
  return [
    ...publishedProblems(jsonText(event, 'kind') ?? 'Event', event),
    ...(/"(\w+)":null/.exec(text)?.slice(1) ?? []).map((name) => `${name}: is null`),
    ...(jsonText(event, 'id') === null ? ['id: is no text'] : []),
    ...(TIME.test(jsonText(event, 'timestamp') ?? '') ? [] : ['timestamp: is no time']),
  ];
}

/** The same of a conversation. Only we say why it has failed, and where its cost is from. */
export function infoProblems(info: unknown): string[] {
  const { error: _failure, ...published } = Object(info);
  const { cost_source: _source, ...metrics } = Object(published.metrics);
  return publishedProblems('ConversationInfo', { ...published, metrics });
}

export function publishedAlternatives(name: string): string[] {
  return (SCHEMAS[name]?.oneOf ?? []).map(({ $ref = '' }) => $ref.replace('#/components/schemas/', ''));
}

export function publishedValues(name: string): unknown[] {
  return SCHEMAS[name]?.enum ?? [];
}

/** The published route that a request is for, `POST /api/…/{name}`; null when there is none. */
export function publishedRoute(request: FakeRequest): string | null {
  return routeOf(request)?.name ?? null;
}

/** What of a request the stock agent server does not publish: its route, its path, its query, its body. */
export async function requestProblems(request: FakeRequest): Promise<string[]> {
  const route = routeOf(request);
  if (route === null) {
    return [`${request.method} ${request.path}: is not published`];
  }
  const { name, operation, places } = route;
  const parameters = operation.parameters ?? [];
  const problems = [
    ...parameterProblems(inside(parameters, 'path'), places),
    ...parameterProblems(inside(parameters, 'query'), Object.fromEntries(request.query)),
    ...(await bodyProblems(request, operation)),
  ];
  return problems.map((problem) => `${name}: ${problem}`);
}

function routeOf({ method, path }: FakeRequest): Route | null {
  const [found] = Object.entries(paths)
    .flatMap(([template, operations]) => {
      const operation = operations[method.toLowerCase()];
      const match = pattern(template).exec(path);
      return operation && match ? [{ template, operation, places: { ...match.groups } }] : [];
    })
    // `…/search` is no id.
    .toSorted((a, b) => Object.keys(a.places).length - Object.keys(b.places).length);
  return found ? { ...found, name: `${method} ${found.template}` } : null;
}

/** A path of files has slashes in it. */
function pattern(template: string): RegExp {
  const source = template.replaceAll(
    /\{(\w+)\}/g,
    (_braces, name: string) => `(?<${name}>${name === 'path' ? '.+' : '[^/]+'})`,
  );
  return new RegExp(`^${source}$`);
}

function inside(parameters: Parameter[], place: string): Parameter[] {
  return parameters.filter((parameter) => parameter.in === place);
}

function parameterProblems(parameters: Parameter[], given: Record<string, string>): string[] {
  const known = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  return [
    ...parameters
      .filter(({ name, required }) => required === true && !Object.hasOwn(given, name))
      .map(({ name }) => `${name}: is missing`),
    ...Object.entries(given).flatMap(([name, text]) => {
      const parameter = known.get(name);
      return parameter ? textProblems(name, text, parameter.schema) : [`${name}: is not known`];
    }),
  ];
}

/** Parameters travel as texts, numbers too. */
function textProblems(name: string, text: string, { lte, ...schema }: JsonSchema): string[] {
  // Published under the name that the server's library has for it.
  const rule = typeof lte === 'number' ? { ...schema, maximum: lte } : schema;
  const readings = [text, ...(text === '' || Number.isNaN(Number(text)) ? [] : [Number(text)])];
  const problems = readings.map((value) => schemaProblems(value, rule, SCHEMAS, name));
  return problems.some(({ length }) => length === 0) ? [] : (problems.at(-1) ?? []);
}

async function bodyProblems(request: FakeRequest, { requestBody }: Operation): Promise<string[]> {
  if (request.body === '') {
    return requestBody?.required === true ? ['body: is missing'] : [];
  }
  const type = request.headers['content-type']?.split(';')[0] ?? '';
  const schema = requestBody?.content[type]?.schema;
  if (!schema) {
    return [`body: ${type} is not taken`];
  }
  const body: unknown = type === JSON_TYPE ? JSON.parse(request.body) : await formOf(request);
  return schemaProblems(body, schema, SCHEMAS, 'body');
}

async function formOf({ headers, body }: FakeRequest): Promise<Record<string, string>> {
  const type = headers['content-type'] ?? '';
  const form = await new Response(body, { headers: { 'content-type': type } }).formData();
  const members = [...form].map(async ([name, value]) => [
    name,
    typeof value === 'string' ? value : await value.text(),
  ]);
  return Object.fromEntries(await Promise.all(members));
}
