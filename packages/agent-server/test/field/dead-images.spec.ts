import { expect, it } from '@jest/globals';
import type { MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { fails, say } from '../fakes/scripted-llm.answers.js';
import type { Script } from '../fakes/scripted-llm.js';
import { nativeAgent, showImages } from './native-agent.js';

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

it('hands addresses to the model, and loads nothing itself', async () => {
  await shown([GONE, PIXEL]);
  expect(lastPrompt()).toContain(GONE);
  expect(lastPrompt()).toContain(PIXEL);
});

it.each([
  ['text that is no base64', 'data:image/png;base64,?', 'its data is damaged'],
  ['a type that no model takes', 'data:image/svg+xml;base64,PHN2Zz4=', 'it is no PNG, JPEG, GIF or WebP'],
  ['too much', `data:image/png;base64,iVBORw0KGgoA${'A'.repeat(7_000_000)}`, 'it is larger than 5 MiB'],
])('puts a note in place of %s', async (_, url, reason) => {
  await shown([url]);
  expect(agent.llm.refusals).toEqual([]);
  expect(lastPrompt()).toContain(`[an image was left out: ${reason}]`);
});

it.each([
  ['an address that it cannot load', 1, true],
  ['every image', 2, false],
])('goes on without what the model refuses: %s', async (_, notes, keepsData) => {
  const host = await shown([GONE, PIXEL], ({ text }) =>
    text.includes('gone.png') || (!keepsData && text.includes('image_url'))
      ? fails(400, 'unknown variant `image_url`')
      : say('I see.'),
  );
  expect(host.status).toBe('finished');
  expect(lastPrompt().match(/an image was left out: the model refused it/g)).toHaveLength(notes);
  expect(lastPrompt().includes(PIXEL)).toBe(keepsData);
  expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
    { code: 'ImagesLeftOut', detail: expect.stringContaining('unknown variant') },
  ]);
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
  expect(host.status).toBe('error');
  expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
    { code: 'LlmRejected', detail: expect.stringContaining('no such parameter') },
  ]);
});
