import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonAt } from '@slipway/common/json-access.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { OwnToolServer } from '../../src/v1/app-conversations/agent-request/own-tool-server.js';
import { builtRequest } from '../support/built-request.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { useTestApp } from '../support/use-test-app.js';

const OWN = ['https://slipway.example.com/mcp', 'https://slipway.internal/mcp/'];
const OTHERS = ['https://slipway.example.com/other', 'https://tools.example.com/mcp'];
const REQUEST = sampleStartRequest({ max_budget: 1.5 });

describe('an agent whose user has our tool server among the tool servers', () => {
  const app = useTestApp({
    PUBLIC_URL: 'https://slipway.example.com',
    ALLOWED_HOSTS: 'slipway.internal',
    OUTBOUND_ALLOWLIST: 'slipway.example.com,slipway.internal,tools.example.com',
  });
  let user: TestUser;

  beforeAll(async () => {
    user = await app.createUser();
    const servers = Object.fromEntries(
      [...OWN, `${OWN[0]}?key=a-key`, ...OTHERS].map((url, index) => [
        `server${index}`,
        { url, headers: { Authorization: 'Bearer a-key', 'X-Access-Token': 'a-key', 'X-Team': 'blue' } },
      ]),
    );
    await app
      .as(user)
      .post('/api/v1/settings', {
        agent_settings_diff: {
          llm: { model: 'openai/scripted', api_key: 'sk-1' },
          mcp_config: { ...servers, bare: { url: OWN[0], transport: 'sse' } },
        },
        conversation_settings_diff: { max_budget: 5 },
      })
      .expect(200);
  });

  const serversOf = (sent: unknown, ...path: string[]): unknown[] =>
    Object.values(Object(jsonAt(sent, ...path))).map((server) => [
      jsonAt(server, 'url'),
      jsonAt(server, 'headers'),
    ]);
  const expected = (startId: string): unknown[] => {
    const Authorization = `Bearer ${app.app.get(OwnToolServer).keyOf(startId)}`;
    const others = { Authorization: 'Bearer a-key', 'X-Access-Token': 'a-key', 'X-Team': 'blue' };
    return [
      [OWN[0], { Authorization }],
      ...[...OWN, OWN[0]].map((url) => [url, { Authorization, 'X-Team': 'blue' }]),
      ...OTHERS.map((url) => [url, others]),
    ];
  };

  it('gets the key of its conversation for it, and never the key in the settings', async () => {
    const startId = randomUUID();
    for (const dialect of ['slipway', 'stock'] as const) {
      const sent = await builtRequest(app, user, { ...REQUEST, startId, dialect });
      expect(serversOf(sent, 'body', 'agent', 'mcp_config')).toEqual(expected(startId));
    }
  });

  it('does so again after a restart, with no more than its own budget', async () => {
    const rows = new ConversationRows(app);
    const { id } = await rows.conversation(user.id);
    const task = await rows.startTask(user.id, { appConversationId: id, status: 'READY', request: REQUEST });
    const sent = await app.app.get(CredentialsBuilder).build({ id, userId: user.id });

    expect(serversOf(sent, 'mcp_config')).toEqual(expected(task.id));
    expect(sent.max_budget).toBe(1.5);
  });
});
