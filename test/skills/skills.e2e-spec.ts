import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { toHexId } from '@slipway/common/identifiers.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { StartsClient } from '../support/starts-client.js';
import { useTestApp } from '../support/use-test-app.js';

describe('skills of the operator', () => {
  let folder: string;
  const backend = new InProcessSandboxBackend();

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'skills-'));
    await writeFile(path.join(folder, 'tests.md'), 'Run the tests.');
    await writeFile(path.join(folder, 'changes.md'), '---\ntriggers: [changelog]\n---\nOne line each.');
  });
  const app = useTestApp(() => ({ SKILLS_DIR: folder }), { sandboxBackend: backend });

  afterAll(() => rm(folder, { recursive: true, maxRetries: 10 }));

  const search = (query = ''): request.Test =>
    request(app.url).get(`/api/v1/skills/search${query}`).set(app.user.headers);

  const CHANGES = { name: 'changes', type: 'knowledge', source: 'global', triggers: ['changelog'] };
  const TESTS = { name: 'tests', type: 'repo', source: 'global', triggers: null };

  it('are listed in pages', async () => {
    expect((await search().expect(200)).body).toEqual({ items: [CHANGES, TESTS], next_page_id: null });
    const { body: first } = await search('?limit=1').expect(200);
    expect(first.items).toEqual([CHANGES]);
    expect((await search(`?limit=1&page_id=${first.next_page_id}`).expect(200)).body).toEqual({
      items: [TESTS],
      next_page_id: null,
    });
  });

  it('are given to every agent', async () => {
    const client = new StartsClient(app, app.user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model' });
    const { sandboxId, appConversationId: id } = await client.reached(await client.start(), 'READY');

    const agent = backend.boxes.get(sandboxId)?.server.client;
    expect(await agent?.get(`/api/conversations/${toHexId(id)}`)).toMatchObject({
      agent: {
        agent_context: {
          skills: [
            {
              name: 'changes',
              content: 'One line each.',
              trigger: { type: 'keyword', keywords: ['changelog'] },
            },
            { name: 'tests', content: 'Run the tests.', trigger: null },
          ],
        },
      },
    });
  });
});
