import { jsonList, jsonText } from '@slipway/common/json-access.js';
import type { HttpClient } from './http-client.js';
import { untilTrue } from './fixtures.js';

const CONVERSATIONS = '/api/v1/app-conversations';

/** A conversation that accepts messages. */
export interface ReadyConversation {
  id: string;
  sandboxId: string;
  /** Of its sandbox. */
  sessionKey: string;
}

/**
 * Requests a start. Returns the start task's id and the response time in milliseconds.
 *
 * @param sandboxId of a sandbox that runs; without it the conversation gets one of its own
 */
export async function postStart(
  client: HttpClient,
  message: string | null,
  sandboxId?: string,
): Promise<{ taskId: string; ms: number }> {
  const content = [{ type: 'text', text: message }];
  const body = JSON.stringify({
    ...(message !== null && { initial_message: { role: 'user', content, run: true } }),
    ...(sandboxId !== undefined && { sandbox_id: sandboxId }),
  });
  const response = await client.expectOk({ method: 'POST', path: CONVERSATIONS, body });
  return { taskId: jsonText(JSON.parse(response.body), 'id') ?? '', ms: response.ms };
}

/**
 * Requests a start and reads its progress from the stream: asking for it all the time would slow it down.
 *
 * @returns milliseconds from the request until it is READY
 * @throws Error with the cause when it fails
 */
export async function streamStart(client: HttpClient, message: string | null): Promise<number> {
  const content = [{ type: 'text', text: message }];
  const body = JSON.stringify(
    message === null ? {} : { initial_message: { role: 'user', content, run: true } },
  );
  const response = await client.expectOk({ method: 'POST', path: `${CONVERSATIONS}/stream-start`, body });
  const last = jsonList(JSON.parse(response.body)).at(-1);
  if (jsonText(last, 'status') !== 'READY') {
    throw new Error(`a start ended as ${jsonText(last, 'status')}: ${jsonText(last, 'detail')}`);
  }
  return response.ms;
}

/**
 * @param pollMs many starts take so long that asking for them all the time would slow them down
 * @throws Error with the cause when a start fails
 */
export async function untilReady(
  client: HttpClient,
  taskIds: readonly string[],
  pollMs?: number,
): Promise<ReadyConversation[]> {
  const path = `${CONVERSATIONS}/start-tasks?${taskIds.map((id) => `ids=${id}`).join('&')}`;
  let ids: string[] = [];
  await untilTrue(
    async () => {
      const tasks = jsonList(await client.json({ method: 'GET', path }));
      const failed = tasks.find((task) => jsonText(task, 'status') === 'ERROR');
      if (failed !== undefined) {
        throw new Error(`a start failed: ${jsonText(failed, 'detail')}`);
      }
      ids = tasks.flatMap((task) => jsonText(task, 'app_conversation_id') ?? []);
      return ids.length === taskIds.length;
    },
    'READY',
    pollMs,
  );
  return await Promise.all(ids.map((id) => read(client, id)));
}

/** Waits until the agents have nothing to do. */
export async function untilFinished(
  client: HttpClient,
  conversations: readonly ReadyConversation[],
): Promise<void> {
  const path = `${CONVERSATIONS}?${conversations.map(({ id }) => `ids=${id}`).join('&')}`;
  await untilTrue(async () => {
    const all = jsonList(await client.json({ method: 'GET', path }));
    return all.every((conversation) => jsonText(conversation, 'execution_status') === 'finished');
  }, 'the end of all runs');
}

/** Sends a message to the agent and runs it. */
export async function sendMessage(client: HttpClient, to: ReadyConversation, text: string): Promise<void> {
  await client.expectOk({
    method: 'POST',
    path: `/api/v1/sandboxes/${to.sandboxId}/agent-server/api/conversations/${to.id}/events`,
    key: to.sessionKey,
    body: JSON.stringify({ role: 'user', content: [{ type: 'text', text }], run: true }),
  });
}

async function read(client: HttpClient, id: string): Promise<ReadyConversation> {
  const [conversation] = jsonList(await client.json({ method: 'GET', path: `${CONVERSATIONS}?ids=${id}` }));
  return {
    id,
    sandboxId: jsonText(conversation, 'sandbox_id') ?? '',
    sessionKey: jsonText(conversation, 'session_api_key') ?? '',
  };
}
