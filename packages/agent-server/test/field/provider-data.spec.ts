import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { call, refuses, say } from '../fakes/scripted-llm.answers.js';
import { type ChatMessage, inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { sealed } from '../fakes/scripted-responses.js';
import { expectDone, nativeAgent } from './native-agent.js';
import { nativeServer } from './native-server.js';

// https://github.com/earendil-works/pi/issues/6733: `extra_content` of a call is dropped, and Gemini refuses the next request.
// https://github.com/anomalyco/opencode/issues/24124: `reasoning_content` is dropped, and DeepSeek refuses the second turn.

const SIGNED = { extra_content: { vertex: { thought_signature: 'AY89a18IwQsQ8in/' } } };
const THINK = { thought: 'hm' };
const calls = [{ name: 'think', arguments: THINK }];

const agent = nativeAgent();
const native = nativeServer();

const answersIn = (model: ScriptedLlm): ChatMessage[] =>
  (model.requests.at(-1)?.messages ?? []).filter(({ role }) => role === 'assistant');

const callsIn = (model: ScriptedLlm) => answersIn(model).flatMap(({ tool_calls: all }) => all ?? []);

async function elsewhere(use: (other: ScriptedLlm) => Promise<void>): Promise<void> {
  const other = await ScriptedLlm.start(inOrder(say('From elsewhere.')));
  await use(other);
  await other.close();
}

describe('opaque data of a provider', () => {
  it('goes back with its call, after a restart too, and to no other model', async () => {
    const { server, llm } = native();
    const signed = { name: 'think', arguments: THINK, members: SIGNED };
    const id = await native().begin(inOrder({ kind: 'answer', calls: [signed, ...calls] }, say('Done.')));
    await native().talk(id);
    expect(callsIn(llm)).toMatchObject([SIGNED, {}]);
    expect(callsIn(llm)[1]).not.toHaveProperty('extra_content');
    expect(JSON.stringify(await server.client.events(id))).not.toContain('thought_signature');

    await server.restart();
    await native().moveTo(id);
    await native().talk(id);
    expect(callsIn(llm)[0]).toMatchObject(SIGNED);

    await native().moveTo(id, llm.url, { llm_model: 'openai/another' });
    await native().talk(id);
    await elsewhere(async (other) => {
      await native().moveTo(id, other.url);
      await native().talk(id);
      for (const model of [llm, other]) {
        expect(callsIn(model)).toHaveLength(2);
        expect(JSON.stringify(callsIn(model))).not.toContain('thought_signature');
      }
    });
    await native().moveTo(id);
    await native().talk(id);
    expect(callsIn(llm)[0]).toMatchObject(SIGNED);
  });

  it('goes back to the Responses API as an item, after a restart too, and to no other model', async () => {
    const { server, llm } = native();
    const id = await native().begin(inOrder({ kind: 'answer', reasoning: 'Hm.', calls }, say('Done.')));
    const itemsAt = async (members: Record<string, unknown>): Promise<string[]> => {
      await native().moveTo(id, llm.url, members);
      await native().talk(id);
      const input = jsonList(llm.requests.at(-1)?.body, 'input');
      return input.flatMap((item) => jsonText(item, 'encrypted_content') ?? []);
    };
    expect(await itemsAt({ llm_model: 'openai/responses/fake' })).toEqual([sealed('rs_0')]);
    expect(JSON.stringify(await server.client.events(id))).not.toContain('gAAA');

    await server.restart();
    expect(await itemsAt({ llm_model: 'openai/responses/fake' })).toEqual([sealed('rs_0')]);
    expect(await itemsAt({ llm_model: 'openai/responses/another' })).toEqual([]);
    await itemsAt({});
    expect(JSON.stringify(llm.requests.at(-1)?.body)).not.toContain('gAAA');
    expect(llm.refusals).toEqual([]);
  });

  it('goes back with its message, joined from its pieces', async () => {
    const details = [
      { type: 'reasoning.text', text: 'Let me ', index: 0, format: null },
      { type: 'reasoning.text', text: 'see.', index: 0, signature: 'signed' },
    ];
    const members = { reasoning_details: details };
    await agent.run(inOrder({ kind: 'answer', members, calls }, say('Done.')));
    expect(answersIn(agent.llm)[0]).toMatchObject({
      reasoning_details: [{ type: 'reasoning.text', text: 'Let me see.', index: 0, signature: 'signed' }],
    });
  });

  const thinking = {
    thinking: 'Hm.',
    text: 'I think.',
    call: { id: 'toolu_1', name: 'think', input: THINK },
  };

  it('of Anthropic goes back in its place', async () => {
    const { claude } = await agent.runAtAnthropic([thinking, { text: 'Done.' }], {}, ['Go on.']);
    const sent = jsonList(claude.requests.at(-1)?.body, 'messages').map((message) =>
      jsonList(message, 'content'),
    );
    expect(claude.refusals).toEqual([]);
    expect(sent[1]).toMatchObject([
      { type: 'thinking', thinking: 'Hm.', signature: 'signed' },
      { type: 'text', text: 'I think.' },
      { type: 'tool_use', id: 'toolu_1' },
    ]);
    const types = sent.map((content) => jsonAt(content[0], 'type'));
    expect(types).toEqual(['text', 'thinking', 'tool_result', 'text', 'text']);
  });

  // anthropics/claude-code#63357, anomalyco/opencode#3077: accounts and providers behind an address change.
  it.each([
    'messages.1.content.0: Invalid `signature` in `thinking` block',
    'messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.',
  ])('that Anthropic cannot read any more is left out: %s', async (message) => {
    const begun = 'Expected `thinking` or `redacted_thinking`, but found `tool_use`. Or disable `thinking`.';
    const refusals = [message, begun].map((text) => ({ status: 400, message: text }));
    const llm = { parameters: { extended_thinking_budget: 2_000 } };
    const { host, claude } = await agent.runAtAnthropic([thinking, ...refusals, { text: 'Done.' }], { llm });
    expectDone(host);
    expect(claude.requests.map(({ body }) => 'thinking' in body)).toEqual([true, true, true, false]);
    expect(JSON.stringify(claude.requests.at(-1))).not.toContain('signed');
  });

  // mastra-ai/mastra#23433, RooCodeInc/Roo-Code#10759: OpenRouter goes to another of the model's providers.
  const google = { extra_content: { google: { thought_signature: 'AY89' } } };
  const encrypted = { type: 'reasoning.encrypted', data: 'AY89', id: 'call_0_0' };
  const googles = { ...encrypted, format: 'google-gemini-v1' };
  it.each([
    ['Corrupted thought signature.', { reasoning_details: [googles] }, {}],
    ['Unable to submit request because Thought signature is not valid..', {}, google],
    ['messages.7.content.2: Invalid signature in thinking block', { reasoning_details: [encrypted] }, {}],
  ])('that another provider cannot read is left out: %s', async (message, members, ofCall) => {
    const raw = JSON.stringify({ error: { message } });
    const refusal = refuses(400, { error: { message: 'Provider returned error', metadata: { raw } } });
    const called = [{ name: 'think', arguments: THINK, members: ofCall }];
    const host = await agent.run(inOrder({ kind: 'answer', members, calls: called }, refusal, say('Done.')));
    expectDone(host);
    const sent = JSON.stringify(answersIn(agent.llm));
    expect(sent).not.toContain('AY89');
    expect(sent.includes('skip_thought_signature_validator')).toBe(!message.includes('thinking'));
    expect(callsIn(agent.llm)).toHaveLength(1);
  });
});

it.each([
  ['reasoning_content', 'reasoning'],
  ['reasoning', 'reasoning_content'],
])('reasoning in %s goes back in all turns, to its own model only', async (reasoningMember, otherMember) => {
  const first = call('think', THINK, { reasoning: 'First.', reasoningMember });
  const second = { kind: 'answer' as const, reasoning: 'Second.', reasoningMember, text: 'Done.' };
  const host = await agent.run(inOrder(first, second, say('Done again.')));
  await agent.goOn(host, 'Go on.');
  expect(answersIn(agent.llm)).toMatchObject([
    { [reasoningMember]: 'First.' },
    { [reasoningMember]: 'Second.' },
  ]);
  expect(answersIn(agent.llm)[0]).not.toHaveProperty(otherMember);
  await elsewhere(async (other) => {
    host.settings = { ...host.settings, llm: { ...host.settings.llm, baseUrl: other.url } };
    await agent.goOn(host, 'Go on.');
    expect(answersIn(other)).toHaveLength(3);
    expect(JSON.stringify(answersIn(other))).not.toMatch(/First|Second/);
  });
});
