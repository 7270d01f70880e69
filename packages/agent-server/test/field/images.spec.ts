import { describe, expect, it } from '@jest/globals';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import type { MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { call, calls, fails, say } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder, type Script } from '../fakes/scripted-llm.js';
import { codesOf, expectTold, nativeAgent, oddTools, showImages } from './native-agent.js';

// https://github.com/agentscope-ai/agentscope-java/issues/2700: an image that has expired fails every later request.
// https://github.com/danny-avila/LibreChat/issues/5101: OpenAI answers 400 when it cannot load an image in time.

const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const GONE = 'http://127.0.0.1:9/gone.png';

const agent = nativeAgent();

async function show(host: MemoryEngineHost, ...images: string[]): Promise<void> {
  await showImages(host, images, 'Look.');
  await agent.goOn(host);
}

/** A conversation in which images are shown. */
async function shown(images: string[], script: Script = () => say('I see.')): Promise<MemoryEngineHost> {
  const host = await agent.run(script);
  await show(host, ...images);
  return host;
}

const lastPrompt = (): string => agent.llm.requests.at(-1)?.text ?? '';

it.each([
  ['an address that it cannot load', 1, true],
  ['every image', 2, false],
])('goes on without what the model refuses: %s', async (_, notes, keepsData) => {
  const host = await shown([GONE, PIXEL], ({ text }) =>
    text.includes('gone.png') || (!keepsData && text.includes('image_url'))
      ? fails(400, 'unknown variant `image_url`')
      : say('I see.'),
  );
  expect(lastPrompt().match(/an image was left out: the model refused it/g)).toHaveLength(notes);
  expect(lastPrompt().includes(PIXEL)).toBe(keepsData);
  expectTold(host, 'ImagesLeftOut', 'unknown variant', 'finished');
  const requests = agent.llm.requests.length;
  await show(host, PIXEL);
  // It is remembered.
  expect(agent.llm.requests).toHaveLength(requests + 1);
});

// Proxies in front of models refuse bodies of a few megabytes, however short the history is.
it('goes on without images that make a request too large', async () => {
  const host = await shown([PIXEL], ({ text }) =>
    text.includes('image_url') ? fails(413, 'Request Entity Too Large') : say('I see nothing.'),
  );
  expect(lastPrompt()).toContain('an image was left out: the model refused it');
  expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
    { code: 'ImagesLeftOut', detail: expect.stringContaining('Request Entity Too Large') },
  ]);
});

it('reports a refusal that has nothing to do with images', async () => {
  const script: Script = ({ index }) => (index === 0 ? say('Well.') : fails(400, 'no such parameter'));
  const host = await shown([PIXEL], script);
  expectTold(host, 'LlmRejected', 'no such parameter');
});

// openai/codex#4819, anomalyco/opencode: images in the results of tool servers never reach the model.

const mcpConfig = { odd: oddTools() };
const SHOWN = { picture: true };

const rolesOf = (request: ChatRequest | undefined) => request?.messages.map(({ role }) => role);

describe('images in the results of tools', () => {
  it('go to a model behind the results of all calls', async () => {
    const answer = calls({ name: 'nothing', arguments: SHOWN }, { name: 'optional', arguments: {} });
    const host = await agent.run(inOrder(answer, say('I see.')), { mcpConfig });
    const request = agent.llm.requests[1];
    expect(agent.llm.refusals).toEqual([]);
    expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool', 'tool', 'user']);
    expect(request?.messages[3]?.content).toContain('[1 image(s) in the next message]');
    expect(request?.messages[5]?.content).toEqual([
      { type: 'text', text: 'In the result of nothing:' },
      { type: 'image_url', image_url: { url: PIXEL } },
    ]);
    expect(host.status).toBe('finished');
  });

  it('are those of a repository, too', async () => {
    await writeFile(join(agent.folder, 'a.png'), Buffer.from(PIXEL.split(',')[1] ?? '', 'base64'));
    await agent.run(inOrder(call('file_editor', { command: 'view', path: 'a.png' }), say('I see.')));
    expect(agent.llm.requests[1]?.messages.at(-1)?.content).toEqual([
      { type: 'text', text: 'In the result of file_editor:' },
      { type: 'image_url', image_url: { url: PIXEL } },
    ]);
  });

  it('are notes for a model that refuses them, which is remembered', async () => {
    const host = await agent.run(
      ({ index, text }) =>
        text.includes('image_url')
          ? fails(400, 'this model has no eyes')
          : index === 0
            ? calls({ name: 'nothing', arguments: SHOWN })
            : say('I see nothing.'),
      { mcpConfig },
    );
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toContain('ImagesLeftOut');
    expect(agent.llm.requests.at(-1)?.text).toContain('an image was left out: the model refused it');
    const before = agent.llm.requests.length;
    await agent.goOn(host, 'And now?');
    expect(agent.llm.requests).toHaveLength(before + 1);
  });

  it('go to Anthropic beside the result', async () => {
    const answers = [{ call: { id: 'toolu_1', name: 'nothing', input: SHOWN } }, { text: 'I see.' }];
    const { claude } = await agent.runAtAnthropic(answers, { mcpConfig });
    expect(claude.refusals).toEqual([]);
    const last = jsonList(claude.requests.at(-1)?.body, 'messages').at(-1);
    const types = jsonList(last, 'content').map((block) => jsonText(block, 'type'));
    expect(types).toEqual(['tool_result', 'text', 'image']);
  });
});
