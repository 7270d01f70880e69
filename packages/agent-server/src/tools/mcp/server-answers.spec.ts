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
    const poster = { ...image, data: image.data.padEnd(6_000_000, 'A') };
    expect(toContent({ content: [poster] })).toEqual([
      { type: 'text', text: '[an image of 6000022 characters is too large and was left out]' },
    ]);
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

// nicobailon/pi-mcp-adapter#113, ggml-org/llama.cpp#26410: results without texts are shown as nothing.
describe('a result', () => {
  const PNG =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const text = (value: string) => ({ type: 'text', text: value });
  const png = { type: 'image', image_urls: [`data:image/png;base64,${PNG}`] };
  const PDF = '[the resource file:///a (application/pdf, 6 bytes) was left out]';
  const SOUND = { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' };
  const leftOut = (why: string) => ({
    type: 'text',
    text: expect.stringContaining(`an image was left out: ${why}`),
  });
  const image = (data: string, mimeType = 'image/png') => {
    return { content: [{ type: 'image', data, mimeType }] };
  };
  const file = (resource: object) => {
    return { content: [{ type: 'resource', resource: { uri: 'file:///a', ...resource } }] };
  };
  const link = { type: 'resource_link', uri: 'file:///a.rs', name: 'a.rs', description: 'The program.' };

  it.each<[string, Record<string, unknown>, unknown[]]>([
    ['structured, with empty content', { content: [], structuredContent: { a: null } }, [text('{"a":null}')]],
    ['structured, with blank content', { content: [text(' ')], structuredContent: [1] }, [text('[1]')]],
    ['structured, without content', { structuredContent: { a: 1 } }, [text('{"a":1}')]],
    ['structured as a list', { structuredContent: [1] }, [text('[1]')]],
    ['structured, and said', { content: [text('one')], structuredContent: { a: 1 } }, [text('one')]],
    ['a text alone', { content: 'plain' }, [text('plain')]],
    ['one part, no list', { content: text('plain') }, [text('plain')]],
    ['nothing', { content: [] }, []],
    ['null', { content: null, isError: null }, []],
    ['an image', image(PNG), [png]],
    ['an image with a wrong type', image(PNG, 'png'), [png]],
    ['an image as an address', image(`data:image/jpeg;base64,${PNG}`, 'image/jpeg'), [png]],
    ['an image in lines', image(`${PNG.slice(0, 40)}\r\n${PNG.slice(40)}`), [png]],
    ['an image that is none', image('PHN2Zz4=', 'image/svg+xml'), [leftOut('image/svg+xml is no image')]],
    ['an image with broken data', image(`${PNG}!`), [leftOut('')]],
    ['a file with a text', file({ text: 'fn main() {}' }), [text('Resource file:///a:\nfn main() {}')]],
    ['a file with an image', file({ blob: PNG, mimeType: 'image/png' }), [png]],
    ['another file', file({ blob: 'JVBERi0x', mimeType: 'application/pdf' }), [text(PDF)]],
    ['a link', { content: [link] }, [text('Resource file:///a.rs (no type given)\na.rs\nThe program.')]],
    ['a recording', { content: [SOUND] }, [text('[a recording (audio/wav, 3 bytes) was left out]')]],
    ['a kind of the future', { content: [{ type: 'hologram' }] }, [text('{"type":"hologram"}')]],
    [
      'a wrong part beside a right one',
      { content: [{ type: 'text' }, null, text('right')] },
      [text('{"type":"text"}'), text('null'), text('right')],
    ],
  ])('is shown as what it is: %s', (_, result, content) => {
    expect(toContent(result)).toEqual(content);
  });
});
