import { beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import type { DocumentedOperation } from '@slipway/api/openapi/operations.js';
import { addressOf, resolvedOperations } from '../support/resolved-document.js';
import { type JsonSchema, schemaProblems } from '../support/schema-problems.js';
import { useTestApp } from '../support/use-test-app.js';

const service = useTestApp();
let document: OpenAPIObject;
let operations: DocumentedOperation[];

beforeAll(async () => {
  document = (await (await fetch(`${service.url}/openapi.json`)).json()) as OpenAPIObject;
  operations = resolvedOperations(document);
});

const CONVERSATION = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';
const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
const SETTINGS = ['POST /api/settings', 'POST /api/v1/settings'];
const GIT_PROVIDERS = ['POST /api/add-git-providers'];
const MESSAGES = [
  'POST /api/v1/app-conversations/{id}/send-message',
  'POST /api/v1/conversations/{id}/pending-messages',
];
const STARTS = ['POST /api/v1/app-conversations'];
const UPDATES = ['PATCH /api/v1/app-conversations/{id}'];
const HOOK = 'POST /api/v1/webhook-endpoints';
const PROFILE = 'POST /api/v1/settings/profiles/{name}';

// Of operations whose bodies are of one schema, one stands for all.
/** Bodies that `npm run fuzz` found the document and the service to judge differently, and their neighbours. */
const BODIES: [operations: string[], taken: (object | null)[], refused: object[]][] = [
  [
    ['POST /api/v1/sandboxes'],
    [null, {}, { sandbox_spec_id: null }, { sandbox_spec_id: 'slipway' }],
    [{ sandbox_spec_id: 1 }],
  ],
  [
    GIT_PROVIDERS,
    [{ provider_tokens: null }, { provider_tokens: {} }, { provider_tokens: { github: { token: ' ' } } }],
    [
      { provider_tokens: 'x' },
      { provider_tokens: { github: { token: 'a b' } } },
      { provider_tokens: { gitlab: { token: 'ä' } } },
    ],
  ],
  [
    [...SETTINGS, ...GIT_PROVIDERS],
    [
      { mcp_config: { stdio_servers: [{ name: ' a ', command: 'npx', args: null, env: null }] } },
      { mcp_config: { sse_servers: ['HTTPS://mcp.example.com', { url: ' ws://mcp.example.com ' }] } },
    ],
    [
      { mcp_config: { other: [] } },
      { mcp_config: { sse_servers: [''] } },
      { mcp_config: { shttp_servers: [{ url: 'mcp.example.com' }] } },
      { mcp_config: { shttp_servers: ['ftp://mcp.example.com'] } },
    ],
  ],
  [
    SETTINGS,
    ['', ' ', 'A=1', ' A = 1,B=, ,', 'A=b=c,'].map((env) => withServer({ env })),
    ['A', 'A=1,B', '1=2', '=', 'A B=1'].map((env) => withServer({ env })),
  ],
  [
    SETTINGS,
    ['', '-y a', `'it is' "a \\" b" \\' c`, '"\\a"', 'a\\\nb'].map((args) => withServer({ args })),
    ['"', `a 'b`, 'a\\', '"a\\"'].map((args) => withServer({ args })),
  ],
  [
    SETTINGS,
    [
      { max_iterations: 2_147_483_647 },
      { max_iterations: null },
      { llm_base_url: ' ' },
      { llm_base_url: ' HTTP://127.0.0.1:11434/v1 ' },
    ],
    [
      { llm_base_url: 'llm.example.com' },
      { llm_base_url: 'ftp://llm.example.com' },
      { llm_base_url: 'https:///v1' },
      { llm_base_url: 'https://a b' },
      { max_iterations: 2_147_483_648 },
      { max_iterations: 1e300 },
    ],
  ],
  [
    MESSAGES,
    [
      { content: [{ text: 'a' }] },
      { content: [{ type: 'image', image_urls: ['https://images.example.com/a.png'] }] },
      { content: [{ image_url: { url: 'https://images.example.com/a.png' } }] },
    ],
    [
      { content: [] },
      { content: [{}] },
      { content: [{ type: 'text' }] },
      { content: [{ cache_prompt: true }] },
    ],
  ],
  [
    [...STARTS, ...UPDATES],
    [
      { selected_repository: 'octo/app' },
      { selected_repository: '~me/..a/_.-' },
      { selected_repository: 'a/.-' },
      { selected_repository: null, selected_branch: null },
      { selected_branch: 'feature/parser' },
      { selected_branch: 'ä.b@c' },
    ],
    [
      { selected_repository: 'octo' },
      { selected_repository: 'octo/..' },
      { selected_repository: '-a/b' },
      { selected_repository: 'a//b' },
      { selected_repository: `a/${'b'.repeat(512)}` },
      { selected_branch: '' },
      { selected_branch: '-a' },
      { selected_branch: 'a b' },
      { selected_branch: 'a..b' },
      { selected_branch: 'a.lock' },
      { selected_branch: 'a/.b' },
      { selected_branch: '@' },
      { selected_branch: 'a@{b' },
      { selected_branch: 'a.' },
    ],
  ],
  [
    [HOOK],
    [
      { url: 'https://ci.example.com/a', events: ['*'], secret: SECRET },
      { url: 'https://ci.example.com/a', description: null, enabled: false },
    ],
    [
      { url: 'https://ci.example.com/a', events: [] },
      { url: 'https://ci.example.com/a', events: ['other'] },
      { url: 'https://ci.example.com/a', events: ['*', '*'] },
      { url: 'https://ci.example.com/a', secret: 'whsec_AAAA' },
      { url: 'https://ci.example.com/a', secret: SECRET.slice(6) },
      { url: 'https://ci.example.com/a', secret: `whsec_${'A'.repeat(87)}` },
    ],
  ],
  [
    [PROFILE],
    [
      { llm: { model: 'provider/model-1', timeout: 5, api_key: null, is_subscription: false } },
      { llm: { model: 'provider/model-1', base_url: 'HTTPS://llm.example.com/v1' } },
      { llm: { model: 'provider/model-1', base_url: '' } },
      { llm: { model: 'provider/model-1', base_url: null } },
    ],
    [
      { llm: { model: 'provider/model-1', base_url: 'llm.example.com' } },
      { llm: {} },
      { llm: { model: 'provider/model-1', other: 1 } },
      { llm: { model: 'provider/model-1', timeout: 0 } },
      { llm: { model: 'provider/model-1', timeout: 'soon' } },
    ],
  ],
];

const bodies = BODIES.flatMap(([names, taken, refused]) =>
  names.flatMap((operation) => [
    ...taken.map((body) => ({ operation, body, verdict: 'taken' })),
    ...refused.map((body) => ({ operation, body, verdict: 'refused' })),
  ]),
).map((row) => ({ ...row, text: JSON.stringify(row.body).slice(0, 100) }));

describe('what openapi.json says of a body', () => {
  it.each(bodies)('$operation: $text is $verdict', async ({ operation, body, verdict }) => {
    const schema = bodySchema(operation);
    const schemas = document.components?.schemas as Record<string, JsonSchema>;
    const response = await send(operation, { body: JSON.stringify(body) });

    expect({
      document: schemaProblems(body, schema, schemas).length === 0 ? 'taken' : 'refused',
      service: response.status === 422 ? 'refused' : 'taken',
    }).toEqual({ document: verdict, service: verdict });
  });
});

describe('what openapi.json says of a parameter', () => {
  it.each<[operation: string, name: string, taken: unknown[], refused: unknown[]]>([
    ['GET /api/v1/app-conversations/count', 'tag', [['team:checkout'], ['a:']], [['team'], [':a']]],
    ['GET /api/v1/app-conversations/search', 'tag', [['team:checkout', 'a:b']], [['']]],
    ['POST /api/v1/sandboxes', 'Idempotency-Key', ['a!~'], ['a b', 'a'.repeat(256)]],
    ['POST /api/v1/app-conversations', 'Idempotency-Key', ['0'], ['a b']],
  ])('%s: %s', async (operation, name, taken, refused) => {
    const documented = operations.find((one) => one.name === operation)?.operation;
    const parameter = (documented?.parameters ?? []).find((one) => 'name' in one && one.name === name);
    const schema = Object(parameter).schema as JsonSchema;
    const where: unknown = Object(parameter).in;
    for (const value of [...taken, ...refused]) {
      const texts = [value].flat().map(String);
      const response = await send(operation, {
        ...(where === 'header' ? { headers: { [name]: texts.join() }, body: '{}' } : {}),
        query: where === 'query' ? texts.map((text): [string, string] => [name, text]) : [],
      });
      const verdict = taken.includes(value);

      expect({
        value,
        document: schemaProblems(value, schema, {}).length === 0,
        service: response.status !== 422,
      }).toEqual({ value, document: verdict, service: verdict });
    }
  });
});

const MANY_SETTINGS = {
  language: 'de',
  agent: 'CodeActAgent',
  llm_model: 'openai/gpt-5.4',
  llm_base_url: 'http://127.0.0.1:1/v1',
  llm_api_key: 'a-key',
  max_iterations: 7,
  git_user_name: 'Grace',
  search_api_key: 'another-key',
  mcp_config: { stdio_servers: [{ name: 'files', command: 'npx' }] },
  secrets_store: {
    provider_tokens: { github: { token: 'ghp_0123456789012345678901234567890123456' } },
    custom_secrets: { DEPLOY_TOKEN: 'a-secret-of-some-length' },
  },
};
const OF_SETTINGS = /^(POST|PUT|PATCH) \/api\/(v1\/)?(settings|secrets|add-git-providers)/;

async function ask(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: { ...service.admin.headers, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, unknown>;
}

/** All that the routes of settings show, and what they hold back. */
async function shown(): Promise<unknown> {
  return {
    flat: await ask('GET', '/api/settings'),
    nested: await ask('GET', '/api/v1/settings'),
    secrets: await ask('GET', '/api/v1/secrets/search'),
    stored: await service.dataSource.query('SELECT provider, token FROM provider_tokens ORDER BY provider'),
    values: await service.dataSource.query(
      `SELECT name, value FROM custom_secrets WHERE name <> 'EXAMPLE_TOKEN' ORDER BY name`,
    ),
  };
}

describe('Execute with the body that Swagger UI prefills', () => {
  it('changes no settings but the member that it names', async () => {
    await ask('POST', '/api/settings', MANY_SETTINGS);
    const before = await shown();
    const changing = operations.filter(
      ({ name, operation }) => OF_SETTINGS.test(name) && operation.requestBody,
    );
    for (const { name, operation } of changing) {
      const [method = '', template = ''] = name.split(' ');
      const path = (operation.parameters ?? []).reduce((text, parameter) => {
        const { name: of, schema } = parameter as { name: string; schema: { example?: string } };
        return text.replace(`{${of}}`, String(schema.example));
      }, template);
      const body = Object(operation.requestBody).content?.['application/json'];
      const examples: unknown[] = Object.values(Object(body?.examples)).map((each) => Object(each).value);
      await ask(method, path, body?.example ?? examples[0]);
    }
    await ask('DELETE', '/api/v1/settings/profiles/example');
    await ask('DELETE', '/api/v1/secrets/EXAMPLE_TOKEN');

    expect(changing.length).toBeGreaterThan(8);
    const inEnglish = JSON.parse(JSON.stringify(before).replaceAll('"language":"de"', '"language":"en"'));
    expect(await shown()).toEqual(inEnglish);
  });
});

/** Settings with a tool server. */
function withServer(members: object): object {
  return { mcp_config: { stdio_servers: [{ name: 'a', command: 'npx', ...members }] } };
}

function bodySchema(operation: string): JsonSchema {
  const body = operations.find(({ name }) => name === operation)?.operation.requestBody;
  const schema = body && 'content' in body ? body.content['application/json']?.schema : undefined;
  if (schema === undefined) {
    throw new Error(`${operation} takes no JSON`);
  }
  return schema as JsonSchema;
}

/** Sends a request; ids in its path are those of nothing. */
async function send(
  operation: string,
  given: { body?: string; headers?: Record<string, string>; query?: [string, string][] },
): Promise<Response> {
  const { method, path } = addressOf(
    operation,
    operation.includes('profiles') ? 'fast' : CONVERSATION,
    service.user.id,
  );
  return fetch(`${service.url}${path}?${new URLSearchParams(given.query ?? []).toString()}`, {
    method,
    headers: {
      ...service.user.headers,
      ...(given.body !== undefined && { 'Content-Type': 'application/json' }),
      ...given.headers,
    },
    body: given.body,
  });
}
