import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { type ApiClient, type Json, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onMessage } from './support/script.js';

/** At the price of the journeys' model. */
const ONE_CALL = { promptTokens: 100_000, completionTokens: 10 };

describe('what a conversation and those that its agent has started may spend', () => {
  let world: JourneyWorld;
  let user: ApiClient;
  let price: number;
  let budget: number;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    await world.start();
    user = await world.createUser();
    onMessage('spend once', () => call('finish', { message: 'Done.' }, { usage: ONE_CALL }));
    onMessage('spend for ever', (results) =>
      call('think', { thought: `Much: ${results.length}.` }, { usage: ONE_CALL }),
    );
    const { id } = await user.started(message('spend once'));
    price = cost(await user.conversationIn(id, 'finished'));
    budget = 8 * price;
    await user.saveSettings({ max_budget_per_task: budget });
  });

  afterAll(async () => {
    await world.close();
  });

  const cost = (conversation: Json): number => jsonNumber(conversation, 'metrics', 'accumulated_cost') ?? 0;
  const costOf = async (id: string): Promise<number> => cost(await user.conversation(id));

  /** As the agent of a conversation calls a tool. */
  async function callFrom(parentId: string, name: string, given: object): Promise<Json> {
    const params = { name, arguments: given };
    const { body } = await user.send(
      'POST',
      '/mcp',
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
      { Accept: 'application/json', 'X-Slipway-Conversation': parentId },
    );
    expect(jsonAt(body, 'result', 'isError')).not.toBe(true);
    return jsonAt(body, 'result', 'structuredContent');
  }

  async function startFrom(parentId: string, words: string): Promise<string> {
    return text(await callFrom(parentId, 'start_conversation', { message: words }), 'conversation_id');
  }

  /** Until its limit stops it. */
  async function spendAll(id: string): Promise<void> {
    await user.say(id, 'spend for ever');
    await untilSpent(id);
  }

  async function untilSpent(id: string): Promise<void> {
    await user.eventOf(id, (event) => jsonText(event, 'code') === 'MaxBudgetReached');
    await user.conversationIn(id, 'error');
  }

  it('is the budget of the first, whoever spends first', async () => {
    const { id } = await user.started(message('spend once'));
    await user.conversationIn(id, 'finished');
    const held = Promise.withResolvers<void>();
    onMessage('spend later', async (results) => {
      await held.promise;
      return call('think', { thought: `Much: ${results.length}.` }, { usage: ONE_CALL });
    });
    const child = await startFrom(id, 'spend later');
    await user.conversationIn(child, 'running');
    const grandchild = await startFrom(child, 'spend for ever');
    held.resolve();
    await spendAll(id);
    await Promise.all([child, grandchild].map((each) => untilSpent(each)));

    const costs = await Promise.all([id, child, grandchild].map(costOf));
    const total = costs.reduce((sum, each) => sum + each, 0);
    expect(total).toBeGreaterThan(budget / 2);
    expect(total).toBeLessThanOrEqual(budget + costs.length * price);
  });

  it('comes back from a child that has ended, which then gets no more than is left', async () => {
    const { id } = await user.started(message('spend once'));
    await user.conversationIn(id, 'finished');
    const child = await startFrom(id, 'spend once');
    await user.conversationIn(child, 'finished');
    await callFrom(id, 'wait_for_conversation', { conversation_id: child });
    await spendAll(id);
    expect(await costOf(id)).toBeGreaterThanOrEqual(budget - 1.5 * price);
    await user.say(child, 'spend for ever');
    await untilSpent(child);

    expect((await costOf(id)) + (await costOf(child))).toBeLessThanOrEqual(budget + 2 * price);
    expect(jsonAt(await user.conversation(child), 'metrics', 'max_budget_per_task')).toBeLessThan(budget / 2);
  });
});
