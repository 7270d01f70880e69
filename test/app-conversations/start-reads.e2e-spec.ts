import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Client } from 'pg';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { START_TASK_STATUSES } from '../../src/v1/app-conversations/start-task.entity.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { useTestApp } from '../support/use-test-app.js';

const TOKEN = 'ghp_reads4217';

interface Statement {
  text: string;
  values: unknown[];
}

let git: GitHttpServer;

beforeAll(async () => {
  git = await startGitHttpServer(`x-access-token:${TOKEN}`);
  await git.commit('octo/app', 'main', { 'README.md': 'hello' });
});

afterAll(() => git.close());

function isStatus(value: unknown): boolean {
  return START_TASK_STATUSES.some((status) => status === value);
}

/** Of what the driver is given: a text with values, or an object that has both. */
function toStatement(query: unknown, values: unknown): Statement {
  const text = typeof query === 'string' ? query : jsonText(query, 'text');
  return { text: text ?? '', values: Array.isArray(values) ? values : jsonList(query, 'values') };
}

/** By what a statement of a user's or a sandbox's is known. */
const TABLES = {
  settings: /\b(FROM|JOIN) "?settings\b/,
  tools: /\bFROM "?mcp_configs\b/,
  tokens: /\bFROM "?provider_tokens\b/,
  secrets: /\bFROM "?custom_secrets\b/,
  placeholders: /\b(FROM|INTO) "?sandbox_placeholders\b/,
} as const;
type Table = keyof typeof TABLES;

function tableOf(text: string): Table | null {
  // The statement of the settings shows only which tokens there are, so it comes first.
  return (Object.keys(TABLES) as Table[]).find((table) => TABLES[table].test(text)) ?? null;
}

/** How often each step of a start went to the tables of what a user has stored, and of what stands for it. */
function statementsByStep(
  statements: readonly Statement[],
  ids: readonly string[],
): Record<string, Partial<Record<Table, number>>> {
  const steps: Record<string, Partial<Record<Table, number>>> = {};
  let step = 'accepted';
  for (const { text, values } of statements) {
    if (text.includes('UPDATE app_conversation_start_tasks SET attempt')) {
      step = 'WORKING';
    } else if (text.includes('UPDATE app_conversation_start_tasks')) {
      // The new status, where there is one, comes after the old one of the condition.
      step = START_TASK_STATUSES.find((status) => status === values.findLast(isStatus)) ?? step;
    }
    const counts = (steps[step] ??= {});
    const table = tableOf(text);
    if (table !== null && values.flat().some((value) => ids.some((id) => id === value))) {
      counts[table] = (counts[table] ?? 0) + 1;
    }
  }
  return steps;
}

describe.each([
  {
    place: 'inside',
    // For the clone, and for where the user may push.
    PREPARING_REPOSITORY: { tokens: 2 },
    STARTING_CONVERSATION: { tokens: 1, secrets: 1 },
  },
  {
    place: 'outside',
    // Besides: what stands for credentials, which is looked for, and kept for all of them at once.
    PREPARING_REPOSITORY: { tokens: 3, secrets: 1, placeholders: 2 },
    STARTING_CONVERSATION: { tokens: 1, secrets: 1, placeholders: 1 },
  },
])('a start with credentials $place', ({ place, ...ofSteps }) => {
  const app = useTestApp(
    () => ({ GITHUB_CLONE_URL: git.origin, SANDBOX_CREDENTIALS: place, SANDBOX_NETWORK: 'isolated' }),
    { sandboxBackend: new InProcessSandboxBackend() },
  );

  it('reads the settings of the user once when it is accepted and once for all steps, and all else once in each step', async () => {
    const { user } = app;
    const client = new StartsClient(app, user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
    await storeProviderToken(app, user, 'github', TOKEN);
    await storeProviderToken(app, user, 'gitlab', 'glpat-reads4217');
    await storeProviderToken(app, user, 'bitbucket', 'bitbucket-reads4217');
    const sent = jest.spyOn(Client.prototype, 'query');

    const task = await client.reached(await client.start({ selected_repository: 'octo/app' }), 'READY');

    const statements = sent.mock.calls.map(([query, values]) => toStatement(query, values));
    sent.mockRestore();
    const { READY: _afterwards, ...found } = statementsByStep(statements, [user.id, task.sandboxId ?? '']);
    expect(found).toEqual({
      accepted: { settings: 1, tools: 1 },
      WORKING: { settings: 1, tools: 1 },
      WAITING_FOR_SANDBOX: {},
      RUNNING_SETUP_SCRIPT: { secrets: 1 },
      SETTING_UP_GIT_HOOKS: {},
      ...ofSteps,
    });
  });
});
