import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { codesOf, NativeAgent } from './native-agent.js';

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
});
afterAll(async () => {
  await agent.close();
});

// macanderson/stella#359, yologdev/yoagent#145: alternating calls run to the limit, polling ends the run.
describe('an agent that repeats itself', () => {
  it.each([
    [['echo a'], 4],
    [['echo a', 'echo b'], 8],
    [['echo a', 'echo b', 'false'], 12],
  ])('with %j is stopped after %d calls, and is told', async (commands, count) => {
    const host = await agent.run(({ index }) =>
      call('terminal', { command: commands[index % commands.length] }),
    );
    expect(host.status).toBe('stuck');
    expect(agent.llm.requests).toHaveLength(count);
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      { source: 'environment', code: 'AgentStuck', detail: expect.stringContaining('same') },
    ]);
  });

  it('is not one that waits for something', async () => {
    const host = await agent.run(({ index }) =>
      index < 5 ? call('terminal', { command: 'sleep 1.05; echo waiting' }) : say('done'),
    );
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toEqual([]);
  });
});
