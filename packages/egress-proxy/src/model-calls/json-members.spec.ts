import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { JsonMembers } from './json-members.js';

const WANTED = new Set(['usage', 'model', 'message.usage']);

function found(text: string, size = text.length): Record<string, unknown> {
  const members = new JsonMembers(WANTED);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += Math.max(1, size)) {
    members.write(bytes.subarray(at, at + Math.max(1, size)));
  }
  return Object.fromEntries([...members.found].map(([path, json]) => [path, JSON.parse(json) as unknown]));
}

describe('members of a JSON text that streams by', () => {
  it.each<[string, string, Record<string, unknown>]>([
    [
      'at its top',
      '{"model":"m","choices":[{"x":1}],"usage":{"a":{"b":1}}}',
      { model: 'm', usage: { a: { b: 1 } } },
    ],
    ['in a member', '{"type":"message_start","message":{"usage":{"a":1}}}', { 'message.usage': { a: 1 } }],
    ['the last of several', '{"usage":{"a":1},"usage":{"a":2}}', { usage: { a: 2 } }],
    ['of each element of a list', '[{"usage":{"a":1}},{"usage":{"a":2}}]', { usage: { a: 2 } }],
    ['with odd spaces', ' {\n"usage" : {\t"a" : 1 } }', { usage: { a: 1 } }],
    ['not by a name that looks like a path', '{"message.usage":{"a":1}}', {}],
    ['not of null', '{"usage":null,"model":"m"}', { model: 'm' }],
    ['not of what lies deeper', '{"content":[{"input":{"usage":{"a":1}}}],"message":{"x":{"usage":{}}}}', {}],
    ['not of a list in it', '{"usage":[{"a":1}],"message":[{"usage":{"a":1}}]}', {}],
    ['not of texts', '{"content":"\\"usage\\":{\\"a\\":1},\\\\","x":"\\\\\\"{"}', {}],
    ['behind texts that end in backslashes', '{"x":"\\\\","usage":{"a":"}\\""}}', { usage: { a: '}"' } }],
  ])('are found %s', (_what, text, expected) => {
    for (let size = 1; size <= text.length; size += 1) {
      expect([size, found(text, size)]).toEqual([size, expected]);
    }
  });

  it.each([',[', '{"a":', '[{"usage":', '"usage":{', '{"a":[],'])(
    'are found behind megabytes that are as deep as they are long: %s',
    (deep) => {
      const members = new JsonMembers(WANTED);
      members.write(Buffer.from(`{"model":"m","x":${deep.repeat(500_000)}`));
      expect(members.found.get('model')).toBe('"m"');
    },
  );

  it('are those that a parser finds, whatever the text and its chunks', () => {
    const leaf = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.integer(),
      fc.constantFrom('usage', '\\', '"', '{"usage":{}}', null),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('value'), { maxLength: 3 }), tie('object')),
      object: fc.dictionary(
        fc.constantFrom('usage', 'model', 'message', 'x', 'message.usage', 'a"b\\'),
        tie('value'),
        {
          maxKeys: 4,
        },
      ),
    }));
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('usage', 'model', 'message', 'x'), value),
        fc.integer({ min: 1, max: 40 }),
        (body, size) => {
          const isWanted = (member: unknown): boolean =>
            typeof member === 'string' ||
            (typeof member === 'object' && member !== null && !Array.isArray(member));
          const message = body['message'] as { usage?: unknown } | undefined;
          const expected = {
            ...(isWanted(body['usage']) && { usage: body['usage'] }),
            ...(isWanted(message) && isWanted(message?.usage) && { 'message.usage': message?.usage }),
          };
          const { model: _, ...actual } = found(JSON.stringify(body), size);
          expect(actual).toEqual(JSON.parse(JSON.stringify(expected)));
        },
      ),
      { seed: 13, numRuns: 1_000 },
    );
  });

  it('keep little of what is long', () => {
    expect(
      found(
        `{"model":"${'m'.repeat(10_000)}","usage":{"a":"${'x'.repeat(10_000)}"},"message":{"usage":{"a":1}}}`,
        100,
      ),
    ).toEqual({
      'message.usage': { a: 1 },
    });
  });

  it.each(['', '}}}{', ']]"usage":{', '{"usage":{', '"', '{"a":"\\', '{'.repeat(100_000)])(
    'are none of what is no JSON: %.20s',
    (text) => {
      expect(found(text, 7)).toEqual({});
    },
  );
});
