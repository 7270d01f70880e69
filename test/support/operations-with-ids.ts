import type { OpenAPIObject } from '@nestjs/swagger';
import {
  dereferenced,
  type DocumentedOperation,
  operationsOf,
  type Schemas,
} from '@slipway/api/openapi/operations.js';
import { exampleBodyOf } from './request-places.js';
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

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: { example?: unknown };
}

/** Every operation of the document with each of its members that can name what belongs to a user. */
export function attemptsOf(openApi: OpenAPIObject): Attempt[] {
  const document = resolvedDocument(openApi);
  return operationsOf(document).flatMap((documented) => attemptsAt(documented, document.components?.schemas));
}

function attemptsAt(documented: DocumentedOperation, schemas: Schemas = {}): Attempt[] {
  const [method = '', route = ''] = documented.name.split(' ');
  const parameters = (documented.operation.parameters ?? []) as Parameter[];
  const path = parameters.filter((parameter) => parameter.in === 'path');
  const query = parameters.filter((parameter) => parameter.in === 'query');
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
  const content = Object(Object(documented.operation.requestBody).content)['application/json'];
  const example: object | null = content === undefined ? null : Object(exampleBodyOf(documented));
  const members = Object.keys(
    dereferenced(content?.schema?.allOf?.[0] ?? content?.schema, schemas).properties ?? {},
  );
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
