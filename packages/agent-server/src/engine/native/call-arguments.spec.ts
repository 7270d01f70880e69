import { describe, expect, it } from '@jest/globals';
import { convertArguments, parseArguments } from './tool-calls.js';

it.each([
  ['', {}],
  ['  ', {}],
  ['{"a":1}', { a: 1 }],
  ['"{\\"a\\":1}"', { a: 1 }],
  ['```json\n{"a":1}\n```', { a: 1 }],
  ['```\n{"a":"```"}\n```\n', { a: '```' }],
  ['"```json\\n{\\"a\\":1}\\n```"', { a: 1 }],
  ['[1]', null],
  ['null', null],
  ['{"a":', null],
  ['text', null],
])('parseArguments: %j', (written, args) => {
  expect(parseArguments(written)).toEqual(args);
});

const ref = { $defs: { Count: { type: 'integer' } }, properties: { v: { $ref: '#/$defs/Count' } } };

describe('convertArguments', () => {
  it.each([
    [{ type: 'number' }, '30', 30],
    [{ type: 'number' }, ' -1.5e3 ', -1500],
    [{ type: 'integer' }, '7', 7],
    [{ type: ['integer', 'null'] }, '7', 7],
    [{ type: 'integer', nullable: true }, 'null', null],
    [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, '7', 7],
    [{ anyOf: [{ type: 'number' }, { type: 'null' }] }, 'null', null],
    [{ type: 'boolean' }, 'true', true],
    [{ type: 'boolean' }, 'False', false],
    [{ enum: [1, 2] }, '2', 2],
    [{ type: 'array', items: { type: 'integer' } }, '[1, 2]', [1, 2]],
    [{ type: 'array', items: { type: 'integer' } }, '["1", 2]', [1, 2]],
    [{ type: 'array', items: { type: 'integer' } }, ['1', 2], [1, 2]],
    [{ type: 'array' }, '```json\n["a"]\n```', ['a']],
    [{ type: 'object', properties: { n: { type: 'number' } } }, '{"n": "1"}', { n: 1 }],
    [{ type: 'object', additionalProperties: { type: 'number' } }, { x: '1' }, { x: 1 }],
    [{ allOf: [{ type: 'number' }] }, '5', 5],
    [{ properties: { n: { type: 'number' } } }, { n: '1' }, { n: 1 }],
  ])('%j: %j becomes %j', (schema, given, expected) => {
    expect(convertArguments({ properties: { v: schema } }, { v: given })).toEqual({ v: expected });
  });

  it.each([
    [{ type: 'string' }, '30'],
    [{ type: ['string', 'number'] }, '30'],
    [{ anyOf: [{ type: 'string' }, { type: 'array' }] }, '[1]'],
    [{}, '30'],
    [true, '30'],
    [{ enum: ['1', '2'] }, '1'],
    [{ enum: ['a', 1] }, '1'],
    [{ type: 'number' }, 'thirty'],
    [{ type: 'number' }, '0x1f'],
    [{ type: 'number' }, '007'],
    [{ type: 'integer' }, '1.5'],
    [{ type: 'integer' }, '12345678901234567890'],
    [{ type: 'boolean' }, 'yes'],
    [{ type: 'array' }, 'a,b'],
    [{ type: 'array' }, '{"a":1}'],
    [{ type: 'number' }, true],
    [{ type: 'array', items: { type: 'string' } }, ['1']],
    [
      {
        anyOf: [
          { type: 'object', properties: { n: { type: 'number' } } },
          { type: 'object', properties: { n: { type: 'string' } } },
        ],
      },
      { n: '1' },
    ],
    [{ $ref: 'https://elsewhere/schema' }, '1'],
  ])('%j: %j stays', (schema, given) => {
    expect(convertArguments({ properties: { v: schema } }, { v: given })).toEqual({ v: given });
  });

  it('follows references, and ends in those that lead back', () => {
    expect(convertArguments(ref, { v: '3' })).toEqual({ v: 3 });
    const loop = { $defs: { A: { $ref: '#/$defs/A' } }, properties: { v: { $ref: '#/$defs/A' } } };
    expect(convertArguments(loop, { v: '3' })).toEqual({ v: '3' });
  });

  it('keeps members of any name', () => {
    const args: unknown = JSON.parse('{"__proto__": "1", "constructor": "2"}');
    expect(
      JSON.stringify(convertArguments({ properties: {} }, Object.fromEntries(Object.entries(args ?? {})))),
    ).toBe('{"__proto__":"1","constructor":"2"}');
  });
});
