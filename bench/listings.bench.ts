import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { startFakeGithub } from '../test/fakes/fake-github.js';
import type { FakeWorld } from '../test/fakes/fake-world.js';
import { withFolder } from './support/fixtures.js';
import { type HttpClient, pageOutcome, readOutcome } from './support/http-client.js';
import type { Outcome } from './support/report.js';
import {
  insertConversations,
  insertSandboxes,
  type SandboxService,
  withSandboxService,
} from './support/sandbox-service.js';

const ROWS = 1_000;
const SANDBOX_ROWS = 100;
/** The most that a user or an operator may have of them. */
const PROFILES = 100;
const SKILLS = 100;
const TOKEN = 'ghp_bench';
const REPOSITORY = 'bench/repository-0';
const CONVERSATIONS = '/api/v1/app-conversations/search?tag=job:nightly';

/** Pages of what a user has a thousand of, or as many as there may be. Git hosts answer at once, and are asked once. */
export async function benchListings(): Promise<Outcome[]> {
  const github = await startFakeGithub(world());
  try {
    return await withFolder(async (folder) => {
      await writeSkills(folder);
      const environment = { GITHUB_API_URL: github.origin, SKILLS_DIR: folder };
      return await withSandboxService(environment, async (service) => {
        const [, reader] = service.clients;
        const deliveries = await fill(service);
        return await measure(reader, deliveries);
      });
    });
  } finally {
    await github.close();
  }
}

async function measure(reader: HttpClient, deliveries: string): Promise<Outcome[]> {
  const pages = [
    ['100 conversations by tag', `${CONVERSATIONS}&limit=100`],
    ['100 secrets', '/api/v1/secrets/search?limit=100'],
    ['100 skills', '/api/v1/skills/search?limit=100'],
    ['100 deliveries of a webhook', `${deliveries}?limit=100`],
    ['100 repositories', '/api/v1/git/repositories/search?provider=github&limit=100'],
    ['100 branches', `/api/v1/git/branches/search?provider=github&repository=${REPOSITORY}&query=&limit=100`],
    ['100 installations', '/api/v1/git/installations/search?provider=github&limit=100'],
  ] as const;
  const outcomes: Outcome[] = [];
  for (const [what, address] of pages) {
    outcomes.push(await pageOutcome(reader, `a page of ${what}, of 1,000`, address));
  }
  const other = async (what: string, address: string, member: string, count: number): Promise<void> => {
    outcomes.push(
      await readOutcome(reader, what, address, (body) => jsonList(body, member).length === count),
    );
  };
  await other('a page of 20 conversations by tag, of 1,000', `${CONVERSATIONS}&limit=20`, 'items', 20);
  await other('a page of 100 v0 conversations, of 1,000', '/api/conversations?limit=100', 'results', 100);
  await other(`all ${PROFILES} profiles`, '/api/v1/settings/profiles', 'profiles', PROFILES);
  return outcomes;
}

/** @returns the address of the deliveries */
async function fill(service: SandboxService): Promise<string> {
  const {
    database,
    clients: [, reader],
  } = service;
  await insertConversations(service, await insertSandboxes(service, SANDBOX_ROWS), ROWS);
  await database.query(`UPDATE app_conversations SET tags = '{"job": "nightly", "team": "storefront"}'`);
  const post = async (address: string, body: object): Promise<unknown> =>
    await reader.json({ method: 'POST', path: address, body: JSON.stringify(body) });
  const secrets = Array.from({ length: ROWS }, (_, index): [string, object] => [
    `SECRET_${index}`,
    { secret: `value ${index}`, description: 'for the bench' },
  ]);
  await post('/api/settings', {
    secrets_store: {
      custom_secrets: Object.fromEntries(secrets),
      provider_tokens: { github: { token: TOKEN } },
    },
  });
  for (let index = 0; index < PROFILES; index += 1) {
    await post(`/api/v1/settings/profiles/profile-${index}`, {
      llm: { model: 'openai/large-model', api_key: `sk-bench-${index}` },
    });
  }
  const endpoint = await post('/api/v1/webhook-endpoints', {
    url: 'https://example.com/hook',
    events: ['conversation.finished'],
  });
  const id = jsonText(endpoint, 'id') ?? '';
  for (let index = 0; index < ROWS; index += 1) {
    await database.query(
      `INSERT INTO webhook_deliveries (id, endpoint_id, event_type, data, status, attempts, created_at, last_attempt_at,
         last_response_status, last_duration_ms)
       VALUES ($1, $2, 'conversation.finished', '{"id":"1","title":"A conversation"}', 'delivered', 1,
         now() - $3 * interval '1 minute', now(), 200, 12)`,
      [randomUUID(), id, index],
    );
  }
  await database.query('ANALYZE app_conversations, custom_secrets, llm_profiles, webhook_deliveries');
  return `/api/v1/webhook-endpoints/${id}/deliveries`;
}

async function writeSkills(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (let index = 0; index < SKILLS; index += 1) {
    const text = `---\nname: skill-${index}\ntriggers: [word${index}]\n---\nDo number ${index}.\n`;
    await writeFile(path.join(folder, `skill-${index}.md`), text);
  }
}

function world(): FakeWorld {
  return {
    token: TOKEN,
    user: { id: '7', login: 'bench', name: 'Bench', email: 'bench@example.com' },
    repositories: Array.from({ length: ROWS }, (_, index) => ({
      name: `bench/repository-${index}`,
      activeAt: '2026-11-01T10:00:00Z',
      ...(index === 0 && { branches: Array.from({ length: ROWS }, (_branch, branch) => `branch-${branch}`) }),
    })),
    appInstallations: Array.from({ length: ROWS }, (_, index) => ({
      id: index + 1,
      owner: `owner-${index}`,
    })),
    changeRequests: [],
    issues: [],
  };
}
