import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { reservedPort } from '../../support/reserved-port.js';
import { type ApiClient, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onMessage } from './support/script.js';

describe('an agent that calls another one', () => {
  let world: JourneyWorld;
  let user: ApiClient;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    // The service has to know it before it listens: sandboxes reach no other port of this machine.
    const port = await reservedPort();
    await world.start({ PORT: String(port), SANDBOX_NETWORK_ALLOW: `127.0.0.1:${port}` });
    user = await world.createUser();
    // Without a key: each agent gets one of its own.
    await user.saveSettings({ mcp_config: { shttp_servers: [{ url: `${world.url}/mcp` }] } });
  });

  afterAll(async () => {
    await world.close();
  });

  it('waits for it in their sandbox, and gets to know what came of it', async () => {
    onMessage('ask for help', (results, { tools }) => {
      const tool = (name: string): string => tools.find((known) => known.endsWith(name)) ?? name;
      const id = /"conversation_id":"([0-9a-f]{32})"/.exec(results[0] ?? '')?.[1];
      switch (results.length) {
        case 0:
          return call(tool('start_conversation'), { message: 'be the helper' });
        case 1:
          return call(tool('wait_for_conversation'), { conversation_id: id, seconds: 40 });
        case 2:
          return call(tool('get_result'), { conversation_id: id });
        default:
          return call('finish', { message: `I was told: ${results[2]}` });
      }
    });
    onMessage('be the helper', () => call('finish', { message: 'It is forty-two.' }));

    const { id, sandboxId } = await user.started(message('ask for help'));
    const parent = await user.conversationIn(id, 'finished', 'error');
    const [childId] = jsonList(parent, 'sub_conversation_ids');
    const child = await user.conversation(String(childId));
    expect(child).toMatchObject({
      parent_conversation_id: id,
      sandbox_id: sandboxId,
      execution_status: 'finished',
    });
    const end = await user.eventOf(id, (event) => jsonAt(event, 'tool_name') === 'finish');
    expect(text(end, 'action', 'message')).toContain('It is forty-two.');
  });
});
