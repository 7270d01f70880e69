import { describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { resolvedOperations } from '../support/resolved-document.js';
import { useTestApp } from '../support/use-test-app.js';

const SETTINGS = {
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

const service = useTestApp({ GITHUB_API_URL: 'http://127.0.0.1:1' });

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
    await ask('POST', '/api/settings', SETTINGS);
    const document = (await ask('GET', '/openapi.json')) as unknown as OpenAPIObject;
    const before = await shown();
    const operations = resolvedOperations(document).filter(
      ({ name, operation }) => OF_SETTINGS.test(name) && operation.requestBody,
    );
    for (const { name, operation } of operations) {
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

    expect(operations.length).toBeGreaterThan(8);
    const inEnglish = JSON.parse(JSON.stringify(before).replaceAll('"language":"de"', '"language":"en"'));
    expect(await shown()).toEqual(inEnglish);
  });
});
