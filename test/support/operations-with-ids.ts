import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { resolvedDocument } from './resolved-document.js';

/** What belongs to one tenant, or to none. */
export interface Ids {
  conversation: string;
  task: string;
  sandbox: string;
  event: string;
  apiKey: string;
  user: string;
  automation: string;
  run: string;
  automationEvent: string;
  automationWebhook: string;
  endpoint: string;
  delivery: string;
}

/** A request of the API that names something by its id. */
export interface Attempt {
  /** Named as in OpenAPI, with what carries the id: `GET /api/v1/sandboxes (id)`. */
  name: string;
  method: string;
  path: (ids: Ids) => string;
  body?: (ids: Ids) => object;
}

const schema = z.object({
  example: z.unknown().optional(),
  type: z.unknown().optional(),
  $ref: z.string().optional(),
  allOf: z.array(z.object({ $ref: z.string().optional() })).optional(),
  properties: namedValues(z.string(), z.unknown()).optional(),
});
const operation = z.object({
  parameters: z
    .array(z.object({ name: z.string(), in: z.string(), required: z.boolean().optional(), schema }))
    .default([]),
  requestBody: z
    .object({
      content: namedValues(
        z.string(),
        z.object({
          schema,
          example: z.unknown().optional(),
          examples: namedValues(z.string(), z.object({ value: z.unknown() })).optional(),
        }),
      ),
    })
    .optional(),
});
const document = z.object({
  paths: namedValues(z.string(), namedValues(z.string(), operation)),
  components: z.object({ schemas: namedValues(z.string(), schema) }),
});
type Document = z.infer<typeof document>;
type Operation = z.infer<typeof operation>;

/** Every operation of the document with each of its members that can name what belongs to a user. */
export function attemptsOf(openApi: unknown): Attempt[] {
  const parsed = document.parse(resolvedDocument(Object(openApi)));
  return Object.entries(parsed.paths).flatMap(([route, methods]) =>
    Object.entries(methods).flatMap(([method, one]) => attemptsAt(route, method.toUpperCase(), one, parsed)),
  );
}

function attemptsAt(route: string, method: string, one: Operation, all: Document): Attempt[] {
  const path = one.parameters.filter((parameter) => parameter.in === 'path');
  const query = one.parameters.filter((parameter) => parameter.in === 'query');
  const required = query.filter((parameter) => parameter.required);
  const pathOf = (ids: Ids) =>
    path.reduce((left, { name, schema: { example } }) => {
      const kind = kindOf(route, name, 'path');
      return left.replace(`{${name}}`, kind === null ? String(example) : ids[kind]);
    }, route);
  const queryOf = (ids: Ids, names: string[]) =>
    query
      .filter(({ name }) => names.includes(name))
      .map(({ name, schema: { example } }) => {
        const kind = kindOf(route, name, 'query');
        return `${name}=${encodeURIComponent(kind === null ? String(example) : ids[kind])}`;
      })
      .join('&');
  const { example, members } = bodyOf(one, all);
  const withQuery = (names: string[], body?: (ids: Ids) => object, by = names.join(', ')): Attempt => ({
    name: `${method} ${route}${by === '' ? '' : ` (${by})`}`,
    method,
    path: (ids) => [pathOf(ids), queryOf(ids, names)].filter((part) => part !== '').join('?'),
    body: body ?? (example === null ? undefined : () => example),
  });
  const requiredNames = required.map(({ name }) => name);
  const inPath = path.some(({ name }) => kindOf(route, name, 'path') !== null);
  return [
    ...(inPath ? [withQuery(requiredNames)] : []),
    ...query
      .filter(({ name }) => kindOf(route, name, 'query') !== null)
      .filter(({ name }) => !(inPath && requiredNames.includes(name)))
      .map(({ name }) => withQuery([...new Set([...requiredNames, name])])),
    ...members.flatMap((member) => {
      const kind = kindOf(route, member, 'body');
      return kind === null
        ? []
        : [withQuery(requiredNames, (ids) => ({ ...example, [member]: ids[kind] }), member)];
    }),
  ];
}

/** The kind of thing that an id names; null if the thing has no owner. */
function kindOf(route: string, name: string, place: 'path' | 'query' | 'body'): keyof Ids | null {
  const bare = name.replace(/__eq$/, '').replace(/^ids$/, 'id');
  if (bare === 'id') {
    return kindAt(route, place);
  }
  if (name === 'conversation_id' && place === 'body' && route.startsWith('/api/v1/app-conversations')) {
    // The id that a new conversation is to have: a taken one is refused, whichever user has it.
    return null;
  }
  const named: Record<string, keyof Ids> = {
    sandbox_id: 'sandbox',
    conversation_id: 'conversation',
    parent_conversation_id: 'conversation',
    user_id: 'user',
    org_id: 'user',
    organization_id: 'user',
    run_id: 'run',
    event_id: 'automationEvent',
    delivery_id: 'delivery',
  };
  const kind = named[bare] ?? null;
  if (kind === null && place === 'path' && /(?:^|_)id$/.test(name) && name !== 'secret_id') {
    throw new Error(`nobody has such an id: ${name} of ${route}`);
  }
  return kind;
}

function kindAt(route: string, place: 'path' | 'query' | 'body'): keyof Ids | null {
  if (route.startsWith('/api/v1/conversation/') && place === 'query') {
    return 'event';
  }
  const rules: [RegExp, keyof Ids][] = [
    [/\/start-tasks/, 'task'],
    [/\/automation\/v1\/webhooks\b/, 'automationWebhook'],
    [/\/automation\/v1\b/, 'automation'],
    [/\/webhook-endpoints\b/, 'endpoint'],
    [/\/(app-conversations|conversations?|webhooks)\b/, 'conversation'],
    [/\/sandboxes\b/, 'sandbox'],
    [/\/api-keys\b/, 'apiKey'],
    [/\/users\b/, 'user'],
  ];
  return rules.find(([pattern]) => pattern.test(route))?.[1] ?? null;
}

/** An example of the body, and the names of its members. */
function bodyOf(one: Operation, all: Document): { example: object | null; members: string[] } {
  const content = one.requestBody?.content['application/json'];
  if (content === undefined) {
    return { example: null, members: [] };
  }
  const reference = content.schema.$ref ?? content.schema.allOf?.[0]?.$ref;
  const found =
    reference === undefined ? content.schema : all.components.schemas[reference.split('/').at(-1) ?? ''];
  const example =
    content.example ??
    Object.values(content.examples ?? {})[0]?.value ??
    content.schema.example ??
    found?.example;
  return {
    example: typeof example === 'object' ? example : {},
    members: Object.keys(found?.properties ?? {}),
  };
}
