import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { say } from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import type { HttpClient } from './http-client.js';
import { untilTrue } from './fixtures.js';
import { removeSandboxes, type SandboxService, withSandboxService } from './sandbox-service.js';

const CONVERSATIONS = '/api/v1/app-conversations';
/** More start tasks than that are not asked for in one request. */
const IDS_PER_REQUEST = 50;
/** Many starts take so long that asking for them all the time would slow them down. */
const POLL_MS = 50;

/** A conversation that accepts messages. */
export interface ReadyConversation {
  id: string;
  sandboxId: string;
  /** Session key of the sandbox. */
  sessionKey: string;
}

/** Runs `work` with a service whose first user has conversations with a scripted model. */
export async function withConversations<T>(
  environment: Record<string, string>,
  work: (service: SandboxService, modelUrl: string) => Promise<T>,
): Promise<T> {
  const llm = await ScriptedLlm.start(() => say('It is done.'));
  try {
    const allowed = { SANDBOX_NETWORK_ALLOW: new URL(llm.url).host, ...environment };
    return await withSandboxService(allowed, async (service) => {
      await storeModel(service.clients[0], llm.url);
      return await work(service, llm.url);
    });
  } finally {
    await llm.close();
  }
}

/** Stores settings with which conversations start. */
export async function storeModel(client: HttpClient, url: string, others: object = {}): Promise<void> {
  const settings = { llm_model: 'openai/scripted', llm_api_key: 'sk-bench', llm_base_url: url, ...others };
  await client.expectOk({ method: 'POST', path: '/api/settings', body: JSON.stringify(settings) });
}

/** Requests a start. Returns the start task's id and the response time in milliseconds. */
export async function postStart(
  client: HttpClient,
  message: string | null,
): Promise<{ taskId: string; ms: number }> {
  const response = await client.expectOk({ method: 'POST', path: CONVERSATIONS, body: startOf(message) });
  return { taskId: jsonText(JSON.parse(response.body), 'id') ?? '', ms: response.ms };
}

/**
 * Starts a conversation, reads its progress from the stream (asking for it all the time would slow it down), and removes
 * its sandbox afterwards.
 *
 * @returns milliseconds from the request until it is READY
 * @throws Error with the cause when it fails
 */
export async function readyAfter(
  { database }: SandboxService,
  client: HttpClient,
  message: string | null = null,
): Promise<number> {
  const path = `${CONVERSATIONS}/stream-start`;
  const response = await client.expectOk({ method: 'POST', path, body: startOf(message) });
  const last = jsonList(JSON.parse(response.body)).at(-1);
  if (jsonText(last, 'status') !== 'READY') {
    throw new Error(`a start ended as ${jsonText(last, 'status')}: ${jsonText(last, 'detail')}`);
  }
  await removeSandboxes(client, database);
  return response.ms;
}

function startOf(message: string | null): string {
  const content = [{ type: 'text', text: message }];
  return JSON.stringify(message === null ? {} : { initial_message: { role: 'user', content, run: true } });
}

/** Starts so many at once. @returns milliseconds until all of them are READY */
export async function startAtOnce(
  client: HttpClient,
  count: number,
  message: string | null,
): Promise<{ ms: number; conversations: ReadyConversation[] }> {
  const startedAt = performance.now();
  const tasks = await Promise.all(Array.from({ length: count }, () => postStart(client, message)));
  const conversations: ReadyConversation[] = [];
  for (let from = 0; from < count; from += IDS_PER_REQUEST) {
    const ids = tasks.slice(from, from + IDS_PER_REQUEST).map(({ taskId }) => taskId);
    conversations.push(...(await untilReady(client, ids)));
  }
  return { ms: performance.now() - startedAt, conversations };
}

/** @throws Error with the cause when a start fails */
export async function untilReady(
  client: HttpClient,
  taskIds: readonly string[],
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
    POLL_MS,
  );
  return (await readAll(client, ids)).map((conversation, index) => ({
    id: ids[index] ?? '',
    sandboxId: jsonText(conversation, 'sandbox_id') ?? '',
    sessionKey: jsonText(conversation, 'session_api_key') ?? '',
  }));
}

/** Waits until the agents have nothing to do. */
export async function untilFinished(
  client: HttpClient,
  conversations: readonly ReadyConversation[],
): Promise<void> {
  const ids = conversations.map(({ id }) => id);
  await untilTrue(async () => {
    const all = await readAll(client, ids);
    return all.every((conversation) => jsonText(conversation, 'execution_status') === 'finished');
  }, 'the end of all runs');
}

/** Returns them in the order of the ids. */
async function readAll(client: HttpClient, ids: readonly string[]): Promise<unknown[]> {
  const path = `${CONVERSATIONS}?${ids.map((id) => `ids=${id}`).join('&')}`;
  return jsonList(await client.json({ method: 'GET', path }));
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
