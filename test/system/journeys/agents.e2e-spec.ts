import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { reservedPort } from '../../support/reserved-port.js';
import { type Json, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onMessage } from './support/script.js';

/** At the price of the journeys' model. */
const ONE_CALL = { promptTokens: 100_000, completionTokens: 10 };

describe('what agents do, seen through the service', () => {
  let world: JourneyWorld;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    // The service has to know its own before it listens: sandboxes reach no other port of this machine.
    const port = await reservedPort();
    await world.start({ PORT: String(port), SANDBOX_NETWORK_ALLOW: `127.0.0.1:${port}` });
  });

  afterAll(async () => {
    await world.close();
  });

  it('waits for another one in their sandbox, and gets to know what came of it', async () => {
    const asking = await world.createUser();
    // Without a key: each agent gets one of its own.
    await asking.saveSettings({ mcp_config: { shttp_servers: [{ url: `${world.url}/mcp` }] } });
    onMessage('ask for help', (results, { tools }) => {
      const tool = (name: string): string => tools.find((known) => known.endsWith(name)) ?? name;
      const id = /"conversation_id":"([0-9a-f]{32})"/.exec(results[0] ?? '')?.[1];
      const steps = [
        call(tool('start_conversation'), { message: 'be the helper' }),
        call(tool('wait_for_conversation'), { conversation_id: id, seconds: 40 }),
        call(tool('get_result'), { conversation_id: id }),
      ];
      return steps[results.length] ?? call('finish', { message: `I was told: ${results[2]}` });
    });
    onMessage('be the helper', () => call('finish', { message: 'It is forty-two.' }));

    const own = await asking.started(message('ask for help'));
    const parent = await asking.conversationIn(own.id, 'finished', 'error');
    const [childId] = jsonList(parent, 'sub_conversation_ids');
    expect(await asking.conversation(String(childId))).toMatchObject({
      parent_conversation_id: own.id,
      sandbox_id: own.sandboxId,
      execution_status: 'finished',
    });
    const end = await asking.eventOf(own.id, (event) => jsonAt(event, 'tool_name') === 'finish');
    expect(text(end, 'action', 'message')).toContain('It is forty-two.');
  });

  it('spends with those that it has started no more than its budget, whoever spends first', async () => {
    const spender = await world.createUser();
    const cost = (of: Json): number => jsonNumber(of, 'metrics', 'accumulated_cost') ?? 0;
    const startFrom = async (parentId: string, words: string): Promise<string> => {
      const params = { name: 'start_conversation', arguments: { message: words } };
      const { body } = await spender.send(
        'POST',
        '/mcp',
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
        { Accept: 'application/json', 'X-Slipway-Conversation': parentId },
      );
      return text(body, 'result', 'structuredContent', 'conversation_id');
    };
    const held = Promise.withResolvers<void>();
    const spendMore = (results: string[]) =>
      call('think', { thought: `Much: ${results.length}.` }, { usage: ONE_CALL });
    onMessage('spend once', () => call('finish', { message: 'Done.' }, { usage: ONE_CALL }));
    onMessage('spend for ever', spendMore);
    onMessage('spend later', async (results) => {
      await held.promise;
      return spendMore(results);
    });

    const { id: first, sandboxId: place } = await spender.started(message('spend once'));
    const price = cost(await spender.conversationIn(first, 'finished'));
    const budget = 8 * price;
    await spender.saveSettings({ max_budget_per_task: budget });
    const { id } = await spender.started({ sandbox_id: place, ...message('spend once') });
    await spender.conversationIn(id, 'finished');
    const child = await startFrom(id, 'spend later');
    await spender.conversationIn(child, 'running');
    const all = [id, child, await startFrom(child, 'spend for ever')];
    held.resolve();
    await spender.say(id, 'spend for ever');
    const costs: number[] = [];
    for (const each of all) {
      await spender.eventOf(each, (event) => jsonText(event, 'code') === 'MaxBudgetReached');
      costs.push(cost(await spender.conversationIn(each, 'error')));
    }

    const total = costs.reduce((sum, each) => sum + each, 0);
    expect(total).toBeGreaterThan(budget / 2);
    expect(total).toBeLessThanOrEqual(budget + costs.length * price);
  });
});
