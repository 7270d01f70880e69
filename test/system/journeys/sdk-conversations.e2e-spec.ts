import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { toHexId } from '../../../src/common/identifiers.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { type ApiClient, type Json, text } from './support/api-client.js';
import { JourneyWorld, LLM_KEY } from './support/journey-world.js';
import { onLongWork, onMessage, shell } from './support/script.js';

jest.setTimeout(180_000);

describe('what clients do beside the service', () => {
  let world: JourneyWorld;
  let user: ApiClient;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    await world.start();
    user = await world.createUser();
  });

  afterAll(async () => {
    await world.close();
  });

  const sandbox = async (): Promise<string> => {
    const id = text(await user.post('/api/v1/sandboxes'), 'id');
    await user.sandboxIn(id, 'RUNNING');
    return id;
  };
  /** As the SDK begins a conversation. */
  const begin = async (sandboxId: string, words: string): Promise<string> => {
    const id = randomUUID();
    await user.agentServer(sandboxId, 'POST', '/api/conversations', {
      conversation_id: id,
      agent: {
        kind: 'Agent',
        llm: { model: 'openai/gpt-4o', base_url: world.llm.url, api_key: LLM_KEY, usage_id: 'agent' },
        tools: [{ name: 'terminal' }, { name: 'file_editor' }],
      },
      workspace: { kind: 'LocalWorkspace', working_dir: 'project' },
      initial_message: { role: 'user', content: [{ type: 'text', text: words }], run: true },
    });
    return id;
  };
  const listed = async (): Promise<Json[]> =>
    jsonList(await user.get('/api/v1/app-conversations/search?limit=100'), 'items');

  it('a conversation begun at the agent server is listed, rests, and goes on with the key of the settings', async () => {
    const sandboxId = await sandbox();
    const id = await begin(sandboxId, shell('echo from the SDK > sdk.txt'));

    await user.conversationIn(id, 'finished');
    const found = (await listed()).find((one) => jsonAt(one, 'id') === toHexId(id));
    expect(found).toMatchObject({ sandbox_id: sandboxId, llm_model: 'openai/gpt-4o' });
    expect(await user.get(`/api/v1/app-conversations/${id}/files`)).toEqual(['sdk.txt']);
    expect((await user.eventsOfKind(id, 'ObservationEvent')).length).toBeGreaterThan(0);

    await user.post(`/api/v1/sandboxes/${sandboxId}/pause`);
    await user.sandboxIn(sandboxId, 'PAUSED');
    await user.post(`/api/v1/sandboxes/${sandboxId}/resume`);
    await user.sandboxIn(sandboxId, 'RUNNING');
    await user.say(id, shell('cat sdk.txt'));
    await user.eventOf(id, (event) => JSON.stringify(event).includes('"text":"from the SDK'));
    await user.conversationIn(id, 'finished');
    expect(jsonAt(await user.conversation(id), 'title')).not.toMatch(/^Conversation /);
  });

  it('what the web client stops stays stopped, until its user says something', async () => {
    const goOn = onLongWork(6);
    const { id, sandboxId } = await user.started({
      initial_message: { role: 'user', content: [{ type: 'text', text: 'work on' }], run: true },
    });
    await user.eventOf(id, (event) => JSON.stringify(event).includes('Step 2.'));

    // As the web client does it.
    await user.post(`/api/v1/sandboxes/${sandboxId}/pause`);
    await user.post(`/api/v1/sandboxes/${sandboxId}/resume`);
    await user.sandboxIn(sandboxId, 'RUNNING');
    expect(jsonAt(await user.conversation(id), 'execution_status')).toBe('paused');
    goOn();
    onMessage('say so', () => call('finish', { message: 'So.' }));
    await user.post(`/api/v1/conversations/${id}/pending-messages`, { content: [{ text: 'say so' }] });

    await user.conversationIn(id, 'finished');
    const thoughts = (await user.events(id)).filter((event) => JSON.stringify(event).includes('Step 4.'));
    expect(thoughts).toEqual([]);
  });
});
