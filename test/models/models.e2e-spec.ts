import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { modelEndpoint } from '@slipway/common/model-endpoint.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { useTestApp } from '../support/use-test-app.js';

/** A model, or a provider. */
interface Listed {
  provider?: string | null;
  name: string;
  verified: boolean;
}

interface Page {
  items: Listed[];
  next_page_id: string | null;
}

describe('/api/v1/config', () => {
  const app = useTestApp();
  let user: TestUser;

  beforeAll(async () => {
    user = await app.createUser();
  });

  it('lists our own agent, and those of the operator', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'agents-'));
    const file = path.join(folder, 'agents.json');
    await writeFile(file, JSON.stringify([{ name: 'tiny', command: 'tiny-agent' }]));
    const withList = await createTestApp({ ACP_AGENTS_FILE: file });
    const agentsOf = async (service: TestApp): Promise<unknown> => {
      const { headers } = await service.createUser();
      return (await request(service.url).get('/api/v1/config/agents').set(headers).expect(200)).body;
    };
    try {
      expect(await agentsOf(app)).toEqual(['CodeActAgent']);
      expect(await agentsOf(withList)).toEqual(['CodeActAgent', 'acp:tiny']);
    } finally {
      await withList.close();
      await rm(folder, { recursive: true, maxRetries: 10 });
    }
  });

  const search = async (list: 'models' | 'providers', query: object = {}): Promise<Page> =>
    (await request(app.url).get(`/api/v1/config/${list}/search`).query(query).set(user.headers).expect(200))
      .body;

  async function all(list: 'models' | 'providers', query: object = {}): Promise<Listed[]> {
    const items: Listed[] = [];
    let page: string | null = null;
    do {
      const found: Page = await search(list, {
        ...query,
        limit: 100,
        ...(page !== null && { page_id: page }),
      });
      items.push(...found.items);
      page = found.next_page_id;
    } while (page !== null);
    return items;
  }

  it('lists the models of the catalogue in pages, each once', async () => {
    const models = await all('models');
    const names = models.map(({ provider, name }) => `${provider}/${name}`);

    expect(names.length).toBeGreaterThan(500);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('anthropic/claude-sonnet-4-5');
    const first = await search('models', { limit: 1 });
    expect(first).toEqual({ items: models.slice(0, 1), next_page_id: expect.any(String) });
    expect(Object.keys(first.items[0] ?? {})).toEqual([
      'provider',
      'name',
      'verified',
      'hidden',
      'canonical',
    ]);
  });

  it('finds models by name, provider and whether they are verified', async () => {
    const found = await all('models', { query: 'SONNET', provider__eq: 'anthropic' });
    expect(found.length).toBeGreaterThan(0);
    expect(found.every(({ provider, name }) => provider === 'anthropic' && name.includes('sonnet'))).toBe(
      true,
    );

    const verified = await all('models', { verified__eq: true });
    const providers = new Set(verified.map(({ provider }) => provider));
    expect([...providers]).toEqual(
      expect.arrayContaining([
        'anthropic',
        'deepseek',
        'gemini',
        'groq',
        'mistral',
        'openai',
        'openrouter',
        'xai',
      ]),
    );
    // Their addresses differ from customer to customer, or their names are longer.
    expect(
      ['aws', 'azure', 'cloudflare', 'fireworks', 'google'].filter((name) => providers.has(name)),
    ).toEqual([]);
    const endpoints = verified.map(({ provider, name }) => modelEndpoint(`${provider}/${name}`, null));
    expect(endpoints.filter((endpoint) => 'problem' in endpoint)).toEqual([]);
    expect(verified.map(({ name }) => name).join(' ')).not.toMatch(/embed|-tts|dall-e|-audio/);
    expect(await search('models', { provider__eq: 'nobody' })).toEqual({ items: [], next_page_id: null });
  });

  it('lists providers, verified ones first', async () => {
    const providers = await all('providers');

    const flags = providers.map(({ verified }) => verified);
    expect(flags).toEqual(flags.toSorted((a, b) => Number(b) - Number(a)));
    expect(providers[0]).toEqual({ name: 'anthropic', verified: true });
    expect(providers).toContainEqual({ name: 'aws', verified: false });
    expect((await search('providers', { query: 'OPENR' })).items).toEqual([
      { name: 'openrouter', verified: true },
    ]);
    expect((await search('providers', { verified__eq: false, limit: 1 })).items).toHaveLength(1);
  });
});
