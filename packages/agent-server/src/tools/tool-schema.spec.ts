import { describe, expect, it } from '@jest/globals';
import { repairSchema } from './tool-schema.js';

const LOST = '\u{fffd}';
const EMPTY = { type: 'object', properties: {} };
const text = { type: 'string' };
const object = (properties: object, ...required: string[]) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

function property(schema: unknown, definitions = {}): unknown {
  const { properties } = repairSchema({ type: 'object', properties: { p: schema }, ...definitions }).schema;
  return Object(properties)['p'];
}

describe('repairSchema', () => {
  it.each([
    ['nothing', undefined, EMPTY],
    ['no object', true, EMPTY],
    ['an empty schema', {}, EMPTY],
    ['only a dialect', { $schema: 'http://json-schema.org/draft-07/schema#' }, EMPTY],
    ['an object without properties', { type: 'object' }, EMPTY],
    ['properties without a type', { properties: { a: text } }, object({ a: text })],
    ['another type', { type: 'string' }, EMPTY],
    ['types', { type: ['object', 'null'], properties: { a: text } }, object({ a: text })],
    [
      'required names that do not exist',
      { ...object({ a: text }), required: ['a', 'b', 'a', 1] },
      object({ a: text }, 'a'),
    ],
    [
      'a choice: what all need is required',
      { anyOf: [object({ a: text, b: text }, 'a', 'b'), object({ a: text, c: text }, 'a', 'c')] },
      object({ a: text, c: text, b: text }, 'a'),
    ],
    [
      'a combination: what one needs is required',
      {
        type: 'object',
        properties: { a: text },
        allOf: [{ properties: { b: text }, required: ['b'] }, { $ref: '#/$defs/more' }],
        $defs: { more: { properties: { c: text }, required: ['c'] } },
      },
      object({ c: text, b: text, a: text }, 'b', 'c'),
    ],
    ['a reference to itself', { $ref: '#' }, EMPTY],
    ['a closed object', { ...EMPTY, additionalProperties: false }, { ...EMPTY, additionalProperties: false }],
    ['names by pattern', { ...EMPTY, patternProperties: { '^x': text }, additionalProperties: false }, EMPTY],
  ])('makes an object of %s', (_, schema, expected) => {
    expect(repairSchema(schema).schema).toEqual(expected);
  });

  it.each([
    ['a list without items', { type: 'array' }, { type: 'array', items: {} }],
    [
      'a list by position',
      { type: 'array', items: [text, { type: 'int' }] },
      { type: 'array', items: { anyOf: [text, { type: 'integer' }] } },
    ],
    ['positions in the newer form', { prefixItems: [text] }, { items: { anyOf: [text] } }],
    ['an object without properties', { type: 'object' }, EMPTY],
    ['a map', { type: 'object', additionalProperties: {} }, { ...EMPTY, additionalProperties: true }],
    ['types', { type: ['string', 'null'] }, { type: 'string', nullable: true }],
    [
      'several types',
      { description: 'x', type: ['string', 'array', 'null'], items: { type: 'int' } },
      { description: 'x', anyOf: [text, { type: 'array', items: { type: 'integer' } }], nullable: true },
    ],
    ['null alone', { type: 'null' }, {}],
    [
      'null among values',
      { enum: ['a', null], type: ['string', 'null'] },
      { type: 'string', enum: ['a'], nullable: true },
    ],
    ['types that do not exist', { type: ['any', 'string'] }, { type: 'string' }],
    ['a constant', { const: 'a' }, { enum: ['a'] }],
    ['an empty choice', { type: 'string', enum: [] }, text],
    ['a choice with doubles', { enum: ['a', 'a', 1] }, { enum: ['a', 1] }],
    ['a format of other systems', { type: 'integer', format: 'uint32' }, { type: 'integer' }],
    ['a known format', { type: 'string', format: 'uri' }, { type: 'string', format: 'uri' }],
    ['a pattern that is none', { type: 'string', pattern: '(' }, text],
    ['limits of draft 4', { minimum: 1, exclusiveMinimum: true, required: true }, { minimum: 1 }],
    ['limits that are none', { minLength: -1, maxItems: '3', multipleOf: 0 }, {}],
    ['one of several', { oneOf: [text, { type: 'null' }] }, { type: 'string', nullable: true }],
    ['anything', true, {}],
    ['unknown keywords', { type: 'string', $comment: 'x', id: 'y', examples: [] }, text],
    [
      'a reference beside a description',
      { $ref: '#/definitions/t', description: 'A text.' },
      { type: 'string', description: 'A text.' },
    ],
    ['a reference to another document', { $ref: 'https://example.com/schema' }, {}],
    ['a missing definition', { $ref: '#/definitions/none' }, {}],
    ['half characters', { description: '\ud83d', default: '\0' }, { description: LOST, default: LOST }],
  ])('repairs a property: %s', (_, schema, expected) => {
    expect(property(schema, { definitions: { t: text } })).toEqual(expected);
  });

  it('follows a definition that contains itself as far as it is finite', () => {
    const tree = object({ left: { $ref: '#/$defs/tree' }, name: text });
    expect(property({ $ref: '#/$defs/tree' }, { $defs: { tree } })).toEqual(object({ left: {}, name: text }));
  });

  it('is as small for definitions that multiply as for others', () => {
    const levels = Object.fromEntries(
      Array.from({ length: 20 }, (_, level) => {
        const next = { $ref: `#/$defs/d${level + 1}` };
        return [`d${level}`, object({ a: next, b: next })];
      }),
    );
    expect(JSON.stringify(property({ $ref: '#/$defs/d0' }, { $defs: levels })).length).toBeLessThan(200_000);
  });

  it('gives properties valid names, and tells the old ones', () => {
    const given = { $filter: text, _filter: text, 'user/name': text, ok: text };
    const { schema, renamed } = repairSchema(object(given, '$filter', 'ok'));
    const names = { _filter_2: text, _filter: text, user_name: text, ok: text };
    expect(schema).toEqual(object(names, '_filter_2', 'ok'));
    expect([...renamed]).toEqual([
      ['_filter_2', '$filter'],
      ['user_name', 'user/name'],
    ]);
  });

  it('changes nothing twice', () => {
    const type = ['array', 'string', 'null'];
    const once = repairSchema({ anyOf: [{ properties: { $a: { type } } }] });
    expect(once.repairs).not.toEqual([]);
    const twice = repairSchema(once.schema);
    expect(twice).toEqual({ schema: once.schema, renamed: new Map(), repairs: [] });
  });

  it.each([
    [undefined, 'no object at its root'],
    [{ type: 'string' }, 'no object at its root'],
    [{ type: 'object' }, 'an object without properties'],
    [{ ...EMPTY, anyOf: [text, EMPTY] }, 'a combination at its root'],
    [object({ a: { type: 'array' } }), 'an array without items'],
    [object({ a: { type: ['string', 'null'] } }), 'a list of types'],
    [object({ a: { type: 'int' } }), 'an unknown type'],
    [object({ a: { pattern: '(' } }), 'a pattern that is none'],
    [object({ a: { $ref: '#/$defs/b' } }), 'a reference that leads nowhere'],
    [object({ $a: text }), 'names of properties'],
  ])('says what was wrong with %j', (schema, repair) => {
    expect(repairSchema(schema).repairs).toEqual([repair]);
  });

  it('has nothing to say about what servers take, and usual generators write', () => {
    const { repairs } = repairSchema({
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      additionalProperties: false,
      properties: {
        a: { anyOf: [text, { type: 'null' }], default: null },
        b: { $ref: '#/$defs/b' },
        c: { oneOf: [text, { const: 1 }] },
      },
      $defs: { b: { type: 'array', items: { type: 'integer', format: 'int32' } } },
    });
    expect(repairs).toEqual([]);
  });
});
