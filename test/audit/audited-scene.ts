import { randomUUID } from 'node:crypto';
import { UsersService } from '../../src/auth/users.service.js';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { OneTimeCodes } from '../../src/auth/one-time-codes.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { FakeBrowser } from '../fakes/fake-push-service.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestApp, TestUser } from '../support/create-test-app.js';
import type { GitHosts } from '../support/git-hosts.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { until } from '../support/until.js';

/** Values that must be in no entry, by where they are stored. */
export const PLANTED = {
  secret: 'planted-secret-value',
  newSecret: 'planted-secret-successor',
  description: 'planted-secret-description',
  llmKey: 'planted-llm-key',
  searchKey: 'planted-search-key',
  baseUrl: 'http://planted-base-url.example/v1',
  profileKey: 'planted-profile-key',
  mcpKey: 'planted-mcp-key',
  mcpVariable: 'planted-mcp-variable',
  webhookUrl: 'https://planted-webhook.example.com/path',
  pushUrl: 'https://planted-push.example.com/path',
  message: 'planted first message',
  title: 'planted title of a conversation',
  prompt: 'planted prompt of an automation',
} as const;

export const AUTOMATION = {
  name: PLANTED.title,
  prompt: PLANTED.prompt,
  trigger: { type: 'event', source: 'github', on: 'push' },
} as const;

const TABLES: Record<string, string> = {
  users: 'id, email, is_admin FROM users',
  api_keys: 'id, user_id, name, revoked_at FROM api_keys',
  sessions: 'id FROM sessions WHERE user_id = ANY($1)',
  settings: '* FROM settings WHERE user_id = ANY($1)',
  mcp_configs: '* FROM mcp_configs WHERE user_id = ANY($1)',
  custom_secrets: '* FROM custom_secrets WHERE user_id = ANY($1)',
  provider_tokens: '* FROM provider_tokens WHERE user_id = ANY($1)',
  llm_profiles: '* FROM llm_profiles WHERE user_id = ANY($1)',
  webhook_endpoints: '* FROM webhook_endpoints WHERE user_id = ANY($1)',
  push_subscriptions: '* FROM push_subscriptions WHERE user_id = ANY($1)',
  automations: '* FROM automations WHERE user_id = ANY($1)',
  automation_webhooks: '* FROM automation_webhooks WHERE user_id = ANY($1)',
  automation_runs: 'id, status FROM automation_runs WHERE user_id = ANY($1)',
  sandboxes: 'id, status FROM sandboxes WHERE user_id = ANY($1)',
  egress_permits: '* FROM egress_permits',
  conversations: '* FROM app_conversations WHERE user_id = ANY($1)',
  starts: 'id FROM app_conversation_start_tasks WHERE user_id = ANY($1)',
  entries: 'id FROM audit_entries WHERE owner_user_id = ANY($1)',
};

/** The rows of the scene's users in one statement, as they are read three times for each operation. */
const STATE = `SELECT ${Object.entries(TABLES)
  .map(
    ([name, columns]) =>
      `(SELECT coalesce(json_agg(t ORDER BY t::text), '[]') FROM (SELECT ${columns}) AS t) AS ${name}`,
  )
  .join(', ')}`;

/** A user who has one of everything that can be changed. */
async function makeScene(app: TestApp, hosts: GitHosts) {
  const agent = await FakeConversationServer.start();
  const rows = new ConversationRows(app);
  const [user, other, disabled] = [await app.createUser(), await app.createUser(), await app.createUser()];
  await app.app.get(UsersService).disable(disabled.id, app.admin.id, 'keep');
  const issued = await app.app.get(ApiKeysService).issue({ userId: user.id, name: 'ci', expiresAt: null });
  const { key, address } = agent;
  const sandbox = await rows.sandbox(user.id, { key, address, egressMode: 'rules' });
  const paused = await rows.sandbox(user.id, { status: 'PAUSED' });
  const conversation = {
    sandboxId: sandbox.id,
    llmModel: 'first',
    selectedRepository: 'octo/app',
    gitProvider: 'github' as const,
  };
  // What the agent server says of it, which arrives at a moment of its own.
  const { id } = await rows.conversation(user.id, conversation, { executionStatus: 'idle' });
  agent.open(id);
  const post = async (path: string, body: object): Promise<unknown> => {
    const response = await fetch(`${app.url}${path}`, {
      method: 'POST',
      headers: { ...user.headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) {
      throw new Error(`${path}: ${response.status} ${await response.text()}`);
    }
    return response.json();
  };
  await post('/api/settings', { llm_model: 'openai/first', llm_api_key: PLANTED.llmKey, language: 'en' });
  await post('/api/secrets', {
    name: 'DEPLOY_TOKEN',
    value: PLANTED.secret,
    description: PLANTED.description,
  });
  await post('/api/v1/settings/profiles/fast', {
    llm: { model: 'openai/fast', base_url: PLANTED.baseUrl, api_key: PLANTED.profileKey },
  });
  for (const [provider, { token }] of Object.entries(hosts.tokens.provider_tokens)) {
    await storeProviderToken(app, user, provider as ProviderType, token);
  }
  const endpoint = await post('/api/v1/webhook-endpoints', { url: PLANTED.webhookUrl });
  const { subscription: browser } = new FakeBrowser(PLANTED.pushUrl);
  await post('/api/v1/push/subscriptions', browser);
  const endpointId = (endpoint as { id: string }).id;
  const automation = await post('/api/automation/v1/preset/prompt', AUTOMATION);
  const automationId = (automation as { id: string }).id;
  const source = await post('/api/automation/v1/webhooks', { name: PLANTED.title, source: 'gitlab' });
  // Those of other scenes: one address may begin fifty.
  await app.dataSource.query('DELETE FROM device_logins');
  const device = await post('/oauth/device/authorize', {});
  const runId = randomUUID();
  await app.dataSource.query(
    `INSERT INTO automation_runs (id, automation_id, user_id, cause, trigger_source, status, work)
     VALUES ($1, $2, $3, 'manual:waits', 'manual', 'PENDING', '{}')`,
    [runId, automationId, user.id],
  );
  return {
    agent,
    user,
    other,
    disabledId: disabled.id,
    keyId: issued.record.id,
    endpointId,
    browser,
    automationId,
    runId,
    sourceId: (source as { id: string }).id,
    sandboxId: sandbox.id,
    pausedId: paused.id,
    conversationId: id,
    sandboxKey: agent.key,
    githubToken: hosts.tokens.provider_tokens.github.token,
    userCode: (device as { user_code: string }).user_code,
    newCode: () => app.app.get(OneTimeCodes).issue(user.key, 'session'),
    /** What is stored, and what agent servers were asked to do. */
    state: async (): Promise<Record<string, unknown>> => {
      const users = [user, other, disabled].map((each) => each.id);
      const [stored] = await app.dataSource.query<Record<string, unknown>[]>(STATE, [users]);
      return { ...stored, calls: [...agent.calls] };
    },
    /** Stops the sandbox that is to be paused, as the host that has it would: the request waits for that. */
    finishPause: async (): Promise<void> => {
      const sandboxes = app.dataSource.getRepository(Sandbox);
      const asked = { id: sandbox.id, status: 'PAUSING' } as const;
      await until(async () => (await sandboxes.update(asked, { status: 'PAUSED' })).affected === 1);
    },
    /** Answers the id of the request, its status and its response as text. */
    send: async ({ method, path, body, as = user }: SceneRequest, requestId: string = randomUUID()) => {
      const response = await fetch(`${app.url}${path}`, {
        method,
        headers: {
          ...as.headers,
          'X-Request-Id': requestId,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { id: requestId, status: response.status, text: await response.text() };
    },
  };
}

export type AuditedScene = Awaited<ReturnType<typeof makeScene>>;
export const AuditedScene = { make: makeScene };

export interface SceneRequest {
  method: string;
  path: string;
  body?: object;
  /** The scene's user by default. */
  as?: Pick<TestUser, 'headers'>;
}
