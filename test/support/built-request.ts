import { randomUUID } from 'node:crypto';
import { jsonAt } from '@slipway/common/json-access.js';
import { AGENT_DIALECTS } from '../../src/v1/app-conversations/agent-request/agent-dialects.js';
import { AgentRequestBuilder } from '../../src/v1/app-conversations/agent-request/agent-request.builder.js';
import type { StartRequest } from '../../src/v1/app-conversations/start-task.entity.js';
import type { TestApp, TestUser } from './create-test-app.js';
import { sampleStartRequest } from './sample-start-request.js';

type NewConversation = Parameters<AgentRequestBuilder['build']>[0];

export interface Start
  extends Partial<StartRequest>, Partial<Pick<NewConversation, 'startId' | 'shown' | 'hasOwnImage'>> {
  dialect?: keyof typeof AGENT_DIALECTS;
  /** Secrets of the request, in clear. */
  own?: NewConversation['secrets'];
}

/** What a start of a user would send to the agent server. */
export async function builtRequest(
  { app }: TestApp,
  { id: userId }: TestUser,
  { dialect = 'slipway', startId = randomUUID(), own = new Map(), shown, hasOwnImage, ...given }: Start = {},
): ReturnType<AgentRequestBuilder['build']> {
  const builder = app.get(AgentRequestBuilder);
  const request = sampleStartRequest(given);
  const { configuration } = await builder.check(userId, request, AGENT_DIALECTS[dialect]);
  return await builder.build({
    userId,
    startId,
    conversationId: randomUUID(),
    workingDir: '/workspace/project',
    ports: [],
    request,
    configuration,
    secrets: own,
    dialect: AGENT_DIALECTS[dialect],
    ...(shown && { shown }),
    ...(hasOwnImage && { hasOwnImage }),
  });
}

/** Which model it says, where that is, and by which key. */
export function modelIn(sent: unknown): Record<'key' | 'model' | 'at', unknown> {
  const at = (name: string): unknown => jsonAt(sent, 'body', 'agent', 'llm', name) ?? null;
  return { key: at('api_key'), model: at('model'), at: at('base_url') };
}
