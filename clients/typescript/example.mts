// Starts a conversation, follows it to its end and deletes it: SLIPWAY_KEY=… node example.mts MESSAGE (Node.js 22.18 or newer)
import {
  deleteAppConversation,
  getAppConversationStartTasks,
  startAppConversation,
  streamEvents,
} from 'slipway-client';
import { createClient } from 'slipway-client/client';

const [message = 'Say hello.'] = process.argv.slice(2);
const client = createClient({
  baseUrl: process.env['SLIPWAY_URL'] ?? 'http://localhost:3000',
  headers: { 'X-Session-API-Key': process.env['SLIPWAY_KEY'] },
});

const { data: started } = await startAppConversation({
  client,
  throwOnError: true,
  body: { initial_message: { content: [{ type: 'text', text: message }] } },
});
const id = await conversationOf(started.id);
const { stream } = await streamEvents({ client, path: { id }, query: { from: 'start' } });
for await (const event of stream) {
  process.stdout.write(`${JSON.stringify(event)}\n`);
  if (isLast(event)) {
    break;
  }
}
await deleteAppConversation({ client, throwOnError: true, path: { id } });
process.stdout.write('deleted\n');

/** Waits until the start is ready. @returns the id of its conversation */
async function conversationOf(taskId: string): Promise<string> {
  for (;;) {
    const { data } = await getAppConversationStartTasks({
      client,
      throwOnError: true,
      query: { ids: [taskId] },
    });
    const [task] = data;
    if (task?.status === 'READY' && typeof task.app_conversation_id === 'string') {
      return task.app_conversation_id;
    }
    if (task?.status === 'ERROR') {
      throw new Error(`the start failed: ${task.detail ?? ''}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Whether the event says that the agent has finished. */
function isLast(event: unknown): boolean {
  const { key, value } = Object(event) as { key?: unknown; value?: unknown };
  return key === 'execution_status' && value === 'finished';
}
