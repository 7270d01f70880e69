import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
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

const app = useTestApp(() => ({ GITHUB_CLONE_URL: git.origin }), {
  sandboxBackend: new InProcessSandboxBackend(),
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

/** How often each step of a start read the user's settings, and the list of the user's tokens. */
function readsByStep(
  statements: readonly Statement[],
  userId: string,
): Record<string, { settings: number; tokens: number }> {
  const steps: Record<string, { settings: number; tokens: number }> = {};
  let step = 'accepted';
  for (const { text, values } of statements) {
    if (text.includes('UPDATE app_conversation_start_tasks SET attempt')) {
      step = 'WORKING';
    } else if (text.includes('UPDATE app_conversation_start_tasks')) {
      // The new status, where there is one, comes after the old one of the condition.
      step = START_TASK_STATUSES.find((status) => status === values.findLast(isStatus)) ?? step;
    }
    const reads = (steps[step] ??= { settings: 0, tokens: 0 });
    if (/^\s*SELECT\b/.test(text) && values.includes(userId)) {
      const isSettings = /\b(FROM|JOIN) "?settings\b/.test(text);
      reads.settings += isSettings ? 1 : 0;
      // The statement of the settings shows only which tokens there are.
      reads.tokens += !isSettings && /\bFROM "?provider_tokens\b/.test(text) ? 1 : 0;
    }
  }
  return steps;
}

it('reads the settings of the user once when it is accepted and once for all steps, the tokens where it needs them', async () => {
  const { user } = app;
  const client = new StartsClient(app, user);
  await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
  await storeProviderToken(app, user, 'github', TOKEN);
  await storeProviderToken(app, user, 'gitlab', 'glpat-reads4217');
  await storeProviderToken(app, user, 'bitbucket', 'bitbucket-reads4217');
  const sent = jest.spyOn(Client.prototype, 'query');

  await client.reached(await client.start({ selected_repository: 'octo/app' }), 'READY');

  const none = { settings: 0, tokens: 0 };
  const statements = sent.mock.calls.map(([query, values]) => toStatement(query, values));
  sent.mockRestore();
  expect(readsByStep(statements, user.id)).toMatchObject({
    accepted: { settings: 1, tokens: 0 },
    WORKING: { settings: 1, tokens: 0 },
    WAITING_FOR_SANDBOX: none,
    // For the clone, and for where the user may push.
    PREPARING_REPOSITORY: { settings: 0, tokens: 2 },
    RUNNING_SETUP_SCRIPT: none,
    SETTING_UP_GIT_HOOKS: none,
    STARTING_CONVERSATION: { settings: 0, tokens: 1 },
  });
});
