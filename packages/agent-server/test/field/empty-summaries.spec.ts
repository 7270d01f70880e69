import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { call, endsWith, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { NativeAgent } from './native-agent.js';

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
});
afterAll(async () => {
  await agent.close();
});

// skorokithakis/stavrobot#28, justrach/codegraff#379: models that think until their answer is cut, or call a tool.
it.each<[string, ScriptedAnswer]>([
  ['thoughts alone', endsWith('length', { reasoning: 'What was asked for? …' })],
  ['a blank', endsWith('length', { text: ' \n' })],
  ['a call', call('think', { thought: 'summary' })],
])('a summary that is %s replaces nothing', async (_, answer) => {
  let steps = 0;
  const host = await agent.run(
    ({ text }) => {
      if (text.includes('You condense the earlier part')) {
        return answer;
      }
      steps += 1;
      return steps < 12 ? call('think', { thought: `step ${steps} ${'x'.repeat(1_000)}` }) : say('done');
    },
    { condenserTokens: 2_000 },
  );
  expect(host.status).toBe('finished');
  expect(host.ofKind('Condensation')).toEqual([]);
  expect(agent.llm.requests.some(({ text }) => text.includes('You condense'))).toBe(true);
  expect(agent.llm.requests.at(-1)?.text).toContain('step 1 ');
  // Paid for, but not at each step.
  expect(agent.llm.requests.filter(({ text }) => text.includes('You condense')).length).toBeLessThan(5);
  expect(host.usage).toHaveLength(agent.llm.requests.length);
});
