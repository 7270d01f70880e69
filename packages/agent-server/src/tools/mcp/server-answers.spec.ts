import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { clipText } from '../../clipped-text.js';
import { problemsText, readToolList, repairedMessage, toContent } from './server-answers.js';

// A run that fails can be repeated.
fc.configureGlobal({ seed: 20_261_125 });

const odd = fc.jsonValue({ maxDepth: 4 });
const named = (names: string[]): fc.Arbitrary<unknown> =>
  fc.dictionary(fc.constantFrom(...names), fc.oneof(odd, fc.constantFrom(...names)));

describe('what tool servers send', () => {
  it('may be anything: each list gives tools with names and schemas', () => {
    const tool = fc.oneof(odd, named(['name', 'description', 'inputSchema']));
    fc.assert(
      fc.property(fc.array(tool), (list) => {
        const { tools, problems } = readToolList(list);
        expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length);
        expect(
          tools.every(({ name, inputSchema }) => name.trim() !== '' && typeof inputSchema === 'object'),
        ).toBe(true);
        expect(problems.length + tools.length).toBeGreaterThanOrEqual(list.length);
        expect((problemsText(problems) ?? '').length).toBeLessThan(5_000);
      }),
    );
  });

  it('may be anything: each result gives texts and images that are not blank', () => {
    const part = fc.oneof(
      odd,
      named(['type', 'text', 'data', 'image', 'resource', 'uri', 'blob', 'resource_link']),
    );
    const result = fc.record(
      { content: fc.oneof(odd, fc.array(part)), structuredContent: odd, isError: odd },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(result, (value) => {
        for (const shown of toContent(value)) {
          expect(shown.type === 'text' ? shown.text.trim() : shown.image_urls[0]).toBeTruthy();
        }
      }),
    );
  });

  it('may be anything: a message is none, or has the version and a method or an id', () => {
    fc.assert(
      fc.property(
        fc.oneof(odd, named(['id', 'method', 'params', 'result', 'error', 'jsonrpc', 'code'])),
        (value) => {
          const message = repairedMessage(value, 1);
          expect(
            message === null || (message.jsonrpc === '2.0' && ('method' in message || 'id' in message)),
          ).toBe(true);
        },
      ),
    );
  });

  it('has no more images than an event may hold, which the service takes', () => {
    const image = { type: 'image', data: `iVBORw0KGgo${'A'.repeat(4_500_000)}`, mimeType: 'image/png' };
    const shown = toContent({ content: [image, image] });
    expect(shown.map(({ type }) => type)).toEqual(['image', 'text']);
    expect(JSON.stringify(shown).length).toBeLessThan(8 * 1024 * 1024 - 100_000);
  });

  it('is clipped to what a tool may show', () => {
    const words = { type: 'text', text: 'x'.repeat(20_000) };
    const texts = toContent({ content: [words, words, words] }).map((part) =>
      part.type === 'text' ? part.text : '',
    );
    expect(texts).toEqual([words.text, clipText(words.text, 10_000), clipText(words.text, 0)]);
  });
});
