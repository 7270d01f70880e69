import { type OpenAPIObject, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import type { INestApplication } from '@nestjs/common';
import {
  withCommonHeaders,
  withExamples,
  withExtendedSchemas,
  withoutEmptyMembers,
  withoutSuffixes,
  withTerseParameters,
} from '@slipway/api/openapi/document-passes.js';
import { operationNamed, operationsOf } from '@slipway/api/openapi/operations.js';
import { isForSomeRepositories, scopeOf } from '../scopes.js';
import { OPEN_TO_EVERYONE, ROUTE_RULES } from '@slipway/api/openapi/api-route.js';
import { API_KEY_SCHEME, completeOperation, type Marks, SESSION_SCHEME } from './complete-operation.js';
import { API_VERSION, DESCRIPTION, FIRST_TAG, START_HERE, TAGS } from './introduction.js';
import { isUsualDetail } from './problem-responses.js';
import { ProblemDto, ValidationErrorDto, ValidationProblemDto } from './problem.dto.js';
import { withSchemaRules } from '@slipway/api/openapi/schema-rules.js';
import { withSharedParts } from '@slipway/api/openapi/shared-parts.js';
import { WebhookBodyDto } from '@slipway/api/openapi/webhooks.js';

const ABOUT = {
  contact: { name: 'The operator of this service' },
  license: { name: 'None granted yet', identifier: 'LicenseRef-UNLICENSED' },
};

/** @param publicUrl where clients reach the service; by https, the session's cookie has another name */
export function buildOpenApiDocument(app: INestApplication, publicUrl: string | null = null): OpenAPIObject {
  const isHttps = publicUrl?.startsWith('https:') === true;
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Slipway')
    .setDescription(DESCRIPTION)
    .setVersion(API_VERSION)
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
      isHttps ? '__Host-slipway_session' : 'slipway_session',
      {
        type: 'apiKey',
        in: 'cookie',
        description:
          'For pages of the service itself, from `POST /auth/key` or `POST /auth/code`: `__Host-slipway_session` by https, else `slipway_session`. Changes need `csrf_token` of `GET /auth/session` in the header `X-CSRF-Token`, and are answered with 403 without. A key that comes with the request counts instead.',
      },
      SESSION_SCHEME,
    );
  for (const [tag, description] of Object.entries(TAGS)) {
    builder.addTag(tag, description);
  }
  const servers: [string, string][] =
    publicUrl === null
      ? [
          ['/', 'This server'],
          ['http://127.0.0.1:3000', 'Local development server'],
        ]
      : [[publicUrl, 'This server']];
  servers.forEach((server) => builder.addServer(...server));
  const document = SwaggerModule.createDocument(app, builder.build(), {
    extraModels: [ProblemDto, ValidationErrorDto, ValidationProblemDto, WebhookBodyDto],
  });
  document.components = {
    ...document.components,
    schemas: withSchemaRules(document.components?.schemas ?? {}),
  };
  const ordered = withStartHere(withDeprecations({ ...document, security: [] }));
  const complete = withoutSuffixes(withDerivedResponses(ordered));
  const examples = withExamples(withCommonHeaders(complete));
  // The generator writes `contact: {}` over it.
  const explained = withoutEmptyMembers({ ...examples, info: { ...examples.info, ...ABOUT } });
  return withSharedParts(withExtendedSchemas(withTerseParameters(explained)), isUsualDetail);
}

/** Shows the first requests of a newcomer as a group of their own too, in the order in which they are sent. */
function withStartHere({ paths, ...document }: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone({ ...document, paths });
  const first = START_HERE.map((name) => {
    const { operation } = operationNamed(copy, name);
    operation.tags = [...(operation.tags ?? []), FIRST_TAG];
    return name.slice(name.indexOf(' ') + 1);
  });
  const others = Object.entries(copy.paths).filter(([path]) => !first.includes(path));
  copy.paths = Object.fromEntries([
    ...first.map((path) => [path, copy.paths[path]] as const),
    ...others,
  ]) as OpenAPIObject['paths'];
  return copy;
}

function withDerivedResponses(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  for (const { name, operation } of operationsOf(copy)) {
    const [method = '', path = ''] = name.split(' ');
    const address = `${path.replaceAll(/\W/g, '_')}_${method.toLowerCase()}`;
    operation.operationId = operation.operationId?.replace(/_$/, address);
    const { [ROUTE_RULES]: rules }: typeof operation & Marks = operation;
    copy.webhooks = { ...copy.webhooks, ...rules?.webhooks };
    const { [OPEN_TO_EVERYONE]: isOpen = false }: typeof operation & Marks = operation;
    const scope = isOpen ? 'none' : scopeOf(method, path);
    completeOperation(operation, copy.components?.schemas ?? {}, scope);
    if (!isOpen && isForSomeRepositories(method, path)) {
      Object.assign(operation, { 'x-repositories': true });
    }
  }
  return copy;
}

/** Operations of older clients, with what newer ones call instead. */
const REPLACEMENTS: Readonly<Record<string, string>> = {
  'GET /api/settings': 'GET /api/v1/settings',
  'POST /api/settings': 'POST /api/v1/settings',
  'POST /api/add-git-providers': 'POST /api/v1/secrets/git-providers',
  'POST /api/unset-provider-tokens': 'DELETE /api/v1/secrets/git-providers',
  'GET /api/user/info': 'GET /api/v1/users/git-info',
  'GET /api/user/installations': 'GET /api/v1/git/installations/search',
  'GET /api/user/repositories': 'GET /api/v1/git/repositories/search',
  'GET /api/user/search/repositories': 'GET /api/v1/git/repositories/search',
  'GET /api/user/repository/branches': 'GET /api/v1/git/branches/search',
  'GET /api/user/search/branches': 'GET /api/v1/git/branches/search',
  'GET /api/secrets': 'GET /api/v1/secrets/search',
  'POST /api/secrets': 'POST /api/v1/secrets',
  'PUT /api/secrets/{name}': 'PUT /api/v1/secrets/{secret_id}',
  'DELETE /api/secrets/{name}': 'DELETE /api/v1/secrets/{secret_id}',
  'GET /api/conversations': 'GET /api/v1/app-conversations/search',
  'GET /api/conversations/{id}': 'GET /api/v1/app-conversations',
  'GET /api/conversations/{id}/config': 'GET /api/v1/app-conversations',
  'PATCH /api/conversations/{id}': 'PATCH /api/v1/app-conversations/{id}',
  'DELETE /api/conversations/{id}': 'DELETE /api/v1/app-conversations/{id}',
  'GET /api/options/agents': 'GET /api/v1/config/agents',
  'GET /api/options/config': 'GET /api/v1/web-client/config',
  'GET /api/options/models': 'GET /api/v1/config/models/search',
  'GET /api/options/security-analyzers': 'GET /api/v1/settings/conversation-schema',
  'GET /api/v1/events/count': 'GET /api/v1/conversation/{id}/events/count',
  'GET /alive': 'GET /health/live',
  'GET /health': 'GET /health/live',
  'GET /ready': 'GET /health/ready',
};

/** @throws Error for an operation that the document does not have, on either side */
function withDeprecations(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  for (const [name, replacement] of Object.entries(REPLACEMENTS)) {
    const { operation } = operationNamed(copy, name);
    operation.deprecated = true;
    const notice = `Older generation; newer clients call \`${operationNamed(copy, replacement).name}\`.`;
    operation.description = [operation.description, notice].filter(Boolean).join('\n\n');
  }
  return copy;
}
