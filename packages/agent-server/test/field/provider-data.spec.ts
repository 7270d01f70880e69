import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { type ChatMessage, inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { sealed } from '../fakes/scripted-responses.js';
import { nativeAgent } from './native-agent.js';
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

  it('of Anthropic goes back in its place', async () => {
    const thinking = {
      thinking: 'Hm.',
      text: 'I think.',
      call: { id: 'toolu_1', name: 'think', input: THINK },
    };
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
});

describe('reasoning', () => {
  it.each([
    ['reasoning_content', 'reasoning'],
    ['reasoning', 'reasoning_content'],
  ])('in %s goes back in all turns, to its own model only', async (reasoningMember, otherMember) => {
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
});
