import type { OpenAPIObject } from '@nestjs/swagger';
import { operationNamed } from './operations.js';

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
export function withDeprecations(document: OpenAPIObject): OpenAPIObject {
  const copy = structuredClone(document);
  for (const [name, replacement] of Object.entries(REPLACEMENTS)) {
    const { operation } = operationNamed(copy, name);
    operation.deprecated = true;
    const notice = `Older generation; newer clients call \`${operationNamed(copy, replacement).name}\`.`;
    operation.description = [operation.description, notice].filter(Boolean).join('\n\n');
  }
  return copy;
}
