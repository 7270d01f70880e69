import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { ROUTE_RULES } from './api-route.js';
import { API_KEY_SCHEME, completeOperation, type Marks, SESSION_SCHEME } from './derived-responses.js';
import { type Operation, operationsOf, type Schema, type Schemas } from './operations.js';
import { ProblemDto, ValidationErrorDto } from './problem.dto.js';
import { withSchemaRules } from './schema-rules.js';
import { withSharedResponses } from './shared-responses.js';

/** Of the API that this service implements; the service's own version is in `/server_info`. */
const API_VERSION = '0.53.0';
const REQUEST_ID = 'X-Request-Id';
const RETRY_AFTER = 'Retry-After';
const WITH_RETRY_AFTER = ['429', '503'];

type Content = Record<string, { schema?: Schema; example?: unknown; examples?: unknown }>;

const DESCRIPTION = `Finds a user's open work across GitHub, GitLab and Bitbucket, and keeps their settings, secrets and
git-provider tokens.

**First steps:** press *Authorize* and enter an API key, store a token with \`POST /api/add-git-providers\`, then ask
\`GET /api/user/suggested-tasks\`.

**Errors:** input that breaks rules is answered with 422 and \`{"detail":[{"loc","msg","type"}]}\`; everything else with a
problem document (RFC 9457) whose \`code\` is stable.

**Requests** may carry an id of their own in the header \`X-Request-Id\` (up to 128 letters, digits, \`.\`, \`_\`, \`:\`,
\`-\`); answers and logs repeat it. Instead of \`X-Session-API-Key\`, the key may come in \`X-Access-Token\` or as
\`Authorization: Bearer\`.`;

const TAGS: Record<string, string> = {
  'Suggested tasks': 'Open work across the repositories a user pushed to most recently.',
  Conversations: 'Held with agents that work in sandboxes: started, read, continued.',
  Automations: 'Work that begins by itself: on a schedule, by an event, or by hand.',
  Skills: 'What agents know besides their instructions.',
  Events: 'What happened in conversations, searched or streamed.',
  Sandboxes: 'Where agents work: processes or containers, each with files of its own.',
  'Webhook endpoints': 'Addresses of yours that are told what happens to your conversations.',
  Webhooks: 'For agent servers, with the keys of their sandboxes.',
  Settings: 'What the sessions of a user start with.',
  Config: 'What clients ask before they do anything, and what there is to choose from.',
  'Git providers': "Users' tokens for GitHub, GitLab and Bitbucket.",
  'Custom secrets': "Named values for a user's agents; never shown again.",
  'API keys': 'Keys of a user, issued and revoked.',
  Sessions: 'Of browsers: signing in to the console, and out.',
  Users: 'For administrators.',
  Audit: 'Who did what; for administrators.',
  Health: 'For load balancers and operators; open to everyone.',
};

export function buildOpenApiDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Slipway')
    .setDescription(DESCRIPTION)
    .setVersion(API_VERSION)
    .addServer('/', 'This server')
    .addServer('http://localhost:3000', 'Local development server')
    .addApiKey(
      {
        type: 'apiKey',
        in: 'header',
        name: 'X-Session-API-Key',
        description: 'An API key, such as the one in the file that the first start names.',
      },
      API_KEY_SCHEME,
    )
    .addCookieAuth(
      'slipway_session',
      {
        type: 'apiKey',
        in: 'cookie',
        description:
          'For pages of the service itself, from `POST /auth/key` or `POST /auth/code`. Changes need `csrf_token` of `GET /auth/session` in the header `X-CSRF-Token`, and are answered with 403 without. A key that comes with the request counts instead.',
      },
      SESSION_SCHEME,
    );
  for (const [tag, description] of Object.entries(TAGS)) {
    builder.addTag(tag, description);
  }
  const document = SwaggerModule.createDocument(app, builder.build(), {
    extraModels: [ProblemDto, ValidationErrorDto],
  });
  document.components = {
    ...document.components,
    schemas: withSchemaRules(document.components?.schemas ?? {}),
  };
  const complete = withoutSuffixes(withDerivedResponses({ ...document, security: [] }));
  return withSharedResponses(withoutEmptyMembers(withExamples(withCommonHeaders(complete))));
}

/** Sorts paths and components, so that the order of imports does not matter. */
export function openApiText(document: OpenAPIObject): string {
  const { components = {}, paths, ...rest } = document;
  const sorted = {
    ...rest,
    paths: sortedByKey(paths),
    components: Object.fromEntries(
      Object.entries(components).map(([kind, members]: [string, Record<string, unknown>]) => [
        kind,
        sortedByKey(members),
      ]),
    ),
  };
  return `${JSON.stringify(sorted, null, 2)}\n`;
}

function withoutSuffixes(document: OpenAPIObject): OpenAPIObject {
  const text = JSON.stringify(document).replaceAll(/("#\/components\/schemas\/\w+)Dto"/g, '$1"');
  const renamed = JSON.parse(text) as OpenAPIObject;
  const schemas = Object.entries(renamed.components?.schemas ?? {});
  renamed.components = {
    ...renamed.components,
    schemas: Object.fromEntries(schemas.map(([name, schema]) => [name.replace(/Dto$/, ''), schema])),
  };
  return renamed;
}

function withDerivedResponses(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  for (const { operation } of operationsOf(copy)) {
    const { [ROUTE_RULES]: rules }: typeof operation & Marks = operation;
    copy.webhooks = { ...copy.webhooks, ...rules?.webhooks };
    completeOperation(operation, copy.components?.schemas ?? {});
  }
  return copy;
}

function withCommonHeaders(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  for (const { operation } of operationsOf(copy)) {
    for (const [status, response] of Object.entries(operation.responses)) {
      if (response && !('$ref' in response)) {
        response.headers = {
          ...response.headers,
          [REQUEST_ID]: reference(REQUEST_ID),
          ...(WITH_RETRY_AFTER.includes(status) && { [RETRY_AFTER]: reference(RETRY_AFTER) }),
        };
      }
    }
  }
  copy.components = {
    ...copy.components,
    headers: {
      [REQUEST_ID]: {
        description:
          'Id of the request: the one that came in this header, else a new one. Logs have the first as `caller_request_id`, the second as `request_id`.',
        schema: { type: 'string', maxLength: 128 },
        example: '5f1c4b8e-2d7a-4a53-9f8e-0b1c2d3e4f50',
      },
      [RETRY_AFTER]: {
        description: 'Seconds after which to try again.',
        schema: { type: 'integer', minimum: 0 },
        example: 41,
      },
    },
  };
  return copy;
}

function reference(header: string): { $ref: string } {
  return { $ref: `#/components/headers/${header}` };
}

function withExamples(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  const schemas = copy.components?.schemas ?? {};
  for (const { operation } of operationsOf(copy)) {
    for (const media of contentsOf(operation).flatMap((content) => Object.values(content))) {
      if (media.example === undefined && media.examples === undefined && media.schema) {
        media.example = exampleOf(media.schema, schemas);
      }
    }
  }
  return copy;
}

function contentsOf({ requestBody, responses }: Operation): Content[] {
  return [requestBody, ...Object.values(responses)].flatMap((part) =>
    part && 'content' in part && part.content ? [part.content] : [],
  );
}

export function exampleOf(schema: Schema, schemas: Schemas): unknown {
  if ('$ref' in schema) {
    const target = schemas[schema.$ref.split('/').at(-1) ?? ''];
    return target === undefined ? undefined : exampleOf(target, schemas);
  }
  if (schema.example !== undefined) {
    return schema.example;
  }
  const [choice] = schema.allOf ?? schema.anyOf ?? schema.oneOf ?? [];
  if (choice) {
    return exampleOf(choice, schemas);
  }
  if (schema.properties) {
    return Object.fromEntries(
      Object.entries(schema.properties)
        .map(([name, member]): [string, unknown] => [name, exampleOf(member, schemas)])
        .filter(([, value]) => value !== undefined),
    );
  }
  if (schema.items) {
    const element = exampleOf(schema.items, schemas);
    return element === undefined ? [] : [element];
  }
  return schema.default;
}

/** The generator writes `summary: ""` and `contact: {}` where nothing is given. */
function withoutEmptyMembers(document: OpenAPIObject): OpenAPIObject {
  const { contact: _nobody, ...info } = document.info;
  return JSON.parse(
    JSON.stringify({ ...document, info }, (key, value: unknown) =>
      (key === 'summary' || key === 'description') && value === '' ? undefined : value,
    ),
  ) as OpenAPIObject;
}

function sortedByKey<T>(members: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
