import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';

/** Version of the API that this service speaks; the service's own version is in `/server_info`. */
const API_VERSION = '0.53.0';
export const API_KEY_SCHEME = 'APIKeyHeader';

const DESCRIPTION = `Finds a user's open work across GitHub, GitLab and Bitbucket, and keeps their settings, secrets and
git-provider tokens.

**First steps:** press *Authorize* and enter an API key, store a token with \`POST /api/add-git-providers\`, then ask
\`GET /api/user/suggested-tasks\`.

Errors: input that breaks rules is answered with 422 and \`{"detail":[{"loc","msg","type"}]}\`; everything else with a
problem document (RFC 9457) whose \`code\` is stable.`;

/** The OpenAPI 3.1 document of the running application. */
export function buildOpenApiDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Slipway')
    .setDescription(DESCRIPTION)
    .setVersion(API_VERSION)
    .addServer('/', 'This server')
    .addServer('http://localhost:3000', 'Local development server')
    .addApiKey({ type: 'apiKey', in: 'header', name: 'X-Session-API-Key' }, API_KEY_SCHEME)
    .build();
  const document = SwaggerModule.createDocument(app, config);
  return withoutEmptyTexts({ ...document, security: [] });
}

/** The generator writes `summary: ""` where nothing was said. */
function withoutEmptyTexts(document: OpenAPIObject): OpenAPIObject {
  return JSON.parse(
    JSON.stringify(document, (key, value: unknown) =>
      (key === 'summary' || key === 'description') && value === '' ? undefined : value,
    ),
  ) as OpenAPIObject;
}
