import { expect, it } from '@jest/globals';
import { nativeAgent } from '../../../test/field/native-agent.js';

const agent = nativeAgent();

it("works with Anthropic's own API: text, a call, its result, usage", async () => {
  const turns = [
    {
      thinking: 'I should look around.',
      text: 'Let me look.',
      call: { id: 'toolu_1', name: 'terminal', input: { command: 'echo from-the-shell' } },
      usage: { input: 1_000, output: 50 },
    },
    { text: 'All is well.', usage: { input: 1_200, output: 10 } },
  ];
  const { host, claude } = await agent.runAtAnthropic(turns, {
    llm: { model: 'anthropic/claude-scripted', apiKey: 'key-of-anthropic' },
    modelPrices: { 'claude-scripted': { input: 3, output: 15 } },
  });
  expect(host.status).toBe('finished');
  const [action] = host.ofKind('ActionEvent');
  expect(action).toMatchObject({
    thought: [{ text: 'Let me look.' }],
    reasoning_content: 'I should look around.',
    action: { kind: 'TerminalAction', command: 'echo from-the-shell' },
    tool_call: { id: 'toolu_1', arguments: '{"command":"echo from-the-shell"}' },
  });
  expect(host.ofKind('MessageEvent').at(-1)?.llm_message.content).toEqual([
    { type: 'text', text: 'All is well.' },
  ]);
  expect(host.usage).toEqual([
    { promptTokens: 1_000, completionTokens: 50, costUsd: 0.00375, costSource: 'catalogue', isStep: true },
    { promptTokens: 1_200, completionTokens: 10, costUsd: 0.00375, costSource: 'catalogue', isStep: true },
  ]);
  const [first, second] = claude.requests;
  expect(first?.headers).toMatchObject({
    'x-api-key': 'key-of-anthropic',
    'anthropic-version': '2023-06-01',
  });
  expect(first?.body).toMatchObject({
    model: 'claude-scripted',
    cache_control: { type: 'ephemeral' },
    stream: true,
    system: [{ type: 'text', text: expect.stringContaining('You are Slipway') }],
    tools: expect.arrayContaining([expect.objectContaining({ name: 'terminal' })]),
  });
  expect(second?.body['messages']).toMatchObject([
    { role: 'user', content: [{ type: 'text', text: 'Please do it.' }] },
    {
      role: 'assistant',
      content: expect.arrayContaining([expect.objectContaining({ type: 'tool_use', id: 'toolu_1' })]),
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_1', content: expect.stringContaining('from-the-shell') },
      ],
    },
  ]);
});
