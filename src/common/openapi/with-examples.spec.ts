import { describe, expect, it } from '@jest/globals';
import { exampleOf } from './with-examples.js';

const SCHEMAS = {
  Colour: { type: 'string', enum: ['red'], example: 'red' },
  Car: {
    type: 'object',
    properties: {
      name: { type: 'string', example: 'Ada' },
      colour: { allOf: [{ $ref: '#/components/schemas/Colour' }] },
      owner: { type: ['string', 'null'], example: null },
      note: { type: 'string' },
    },
  },
};

describe('exampleOf', () => {
  it.each([
    ['its own example', { type: 'integer', example: 0 }, 0],
    ['a reference', { $ref: '#/components/schemas/Colour' }, 'red'],
    [
      'members, without those that have none',
      { $ref: '#/components/schemas/Car' },
      { name: 'Ada', colour: 'red', owner: null },
    ],
    ['a list of one', { type: 'array', items: { $ref: '#/components/schemas/Colour' } }, ['red']],
    ['an empty list where elements have none', { type: 'array', items: { type: 'string' } }, []],
    ['the first of several', { anyOf: [{ $ref: '#/components/schemas/Colour' }, { type: 'null' }] }, 'red'],
    ['a default', { type: 'boolean', default: false }, false],
    ['nothing', { type: 'string' }, undefined],
    ['nothing for what leads nowhere', { $ref: '#/components/schemas/Boat' }, undefined],
  ])('takes %s', (_from, schema, expected) => {
    expect(exampleOf(schema, SCHEMAS)).toEqual(expected);
  });
});
