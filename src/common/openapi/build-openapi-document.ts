import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { withCommonHeaders } from './with-common-headers.js';
import { withExamples } from './with-examples.js';

/** Version of the API that this service speaks; the service's own version is in `/server_info`. */
const API_VERSION = '0.53.0';
export const API_KEY_SCHEME = 'APIKeyHeader';

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
  Events: 'What happened in conversations, searched or streamed.',
  Sandboxes: 'Where agents work: processes or containers, each with files of its own.',
  Webhooks: 'For agent servers, with the keys of their sandboxes.',
  Settings: 'What the sessions of a user start with.',
  'Git providers': "Users' tokens for GitHub, GitLab and Bitbucket.",
  'Custom secrets': "Named values for a user's agents; never shown again.",
  'API keys': 'Keys of a user, issued and revoked.',
  Users: 'For administrators.',
  Health: 'For load balancers and operators; open to everyone.',
};

/** The OpenAPI 3.1 document of the running application. */
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
    );
  for (const [tag, description] of Object.entries(TAGS)) {
    builder.addTag(tag, description);
  }
  const document = SwaggerModule.createDocument(app, builder.build());
  return withoutEmptyMembers(withExamples(withCommonHeaders({ ...document, security: [] })));
}

/** The generator writes `summary: ""` and `contact: {}` where nothing was said. */
function withoutEmptyMembers(document: OpenAPIObject): OpenAPIObject {
  const { contact: _nobody, ...info } = document.info;
  return JSON.parse(
    JSON.stringify({ ...document, info }, (key, value: unknown) =>
      (key === 'summary' || key === 'description') && value === '' ? undefined : value,
    ),
  ) as OpenAPIObject;
}
