import { randomUUID } from 'node:crypto';
import { jsonAt } from '@slipway/common/json-access.js';
import { AGENT_DIALECTS } from '../../src/v1/app-conversations/agent-request/agent-dialects.js';
import { AgentRequestBuilder } from '../../src/v1/app-conversations/agent-request/agent-request.builder.js';
import type { StartRequest } from '../../src/v1/app-conversations/start-task.entity.js';
import type { TestApp, TestUser } from './create-test-app.js';
import { sampleStartRequest } from './sample-start-request.js';

export interface Start extends Partial<StartRequest> {
  dialect?: keyof typeof AGENT_DIALECTS;
  hasOwnImage?: boolean;
}

/** What a start of a user would send to the agent server. */
export async function builtRequest(
  { app }: TestApp,
  { id: userId }: TestUser,
  { dialect = 'slipway', hasOwnImage = false, ...given }: Start = {},
): Promise<unknown> {
  const builder = app.get(AgentRequestBuilder);
  const request = sampleStartRequest(given);
  const { configuration } = await builder.check(userId, request, AGENT_DIALECTS[dialect]);
  return await builder.build({
    userId,
    startId: randomUUID(),
    conversationId: randomUUID(),
    workingDir: '/workspace/project',
    ports: [],
    request,
    configuration,
    secrets: new Map(),
    dialect: AGENT_DIALECTS[dialect],
    hasOwnImage,
  });
}

/** Which model it says, where that is, and by which key. */
export function modelIn(sent: unknown): Record<'key' | 'model' | 'at', unknown> {
  const at = (name: string): unknown => jsonAt(sent, 'body', 'agent', 'llm', name) ?? null;
  return { key: at('api_key'), model: at('model'), at: at('base_url') };
}
