import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import request from 'supertest';
import { jsonAt } from '@slipway/common/json-access.js';
import { CredentialRefreshService } from '../../src/v1/app-conversations/credential-refresh.service.js';
import { AGENT_DIALECTS } from '../../src/v1/app-conversations/agent-request/agent-dialect.js';
import { AgentRequestBuilder } from '../../src/v1/app-conversations/agent-request/agent-request.builder.js';
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
    await request(app.url)
      .post('/api/settings')
      .set(user.headers)
      .send({
        llm_model: 'openai/scripted',
        llm_api_key: 'sk-1',
        max_budget_per_task: 5,
        mcp_config: { shttp_servers: [...OWN, ...OTHERS].map((url) => ({ url, api_key: 'a-key' })) },
      })
      .expect(200);
  });

  const headersOf = (sent: unknown, ...path: string[]): unknown[] =>
    Object.values(Object(jsonAt(sent, ...path))).map((server) => jsonAt(server, 'headers'));
  const expected = (id: string): object[] => {
    const Authorization = 'Bearer a-key';
    const own = { Authorization, 'X-Slipway-Conversation': id.replaceAll('-', '') };
    return [own, own, { Authorization }, { Authorization }];
  };

  it('tells it which conversation it is, and gives no more than its own budget', async () => {
    const builder = app.app.get(AgentRequestBuilder);
    const { configuration } = await builder.check(user.id, REQUEST, AGENT_DIALECTS.slipway);
    const conversationId = randomUUID();
    const sent = await builder.build({
      userId: user.id,
      conversationId,
      workingDir: '/workspace/project',
      ports: [],
      request: REQUEST,
      configuration,
      secrets: new Map(),
      dialect: AGENT_DIALECTS.slipway,
    });

    expect(headersOf(sent, 'body', 'agent', 'mcp_config')).toEqual(expected(conversationId));
    expect(jsonAt(sent, 'body', 'slipway', 'max_budget')).toBe(1.5);
  });

  it('does so again after a restart', async () => {
    const rows = new ConversationRows(app);
    const { id } = await rows.conversation(user.id);
    await rows.startTask(user.id, { appConversationId: id, status: 'READY', request: REQUEST });
    const sent = await app.app.get(CredentialRefreshService).build({ id, userId: user.id });

    expect(headersOf(sent, 'mcp_config')).toEqual(expected(id));
    expect(sent.max_budget).toBe(1.5);
  });
});
