import { describe, expect, it } from '@jest/globals';
import { exampleOf, openApiText } from './openapi-document.js';

describe('openApiText', () => {
  it('does not show the order in which modules were imported', () => {
    const info = { title: 'Slipway', version: '1' };
    const operation = { get: { responses: {} } };
    const one = openApiText({
      openapi: '3.1.0',
      info,
      paths: { '/b': operation, '/a': operation },
      components: { schemas: { B: { type: 'string' }, A: { type: 'number' } } },
    });
    const other = openApiText({
      openapi: '3.1.0',
      info,
      paths: { '/a': operation, '/b': operation },
      components: { schemas: { A: { type: 'number' }, B: { type: 'string' } } },
    });

    expect(one).toBe(other);
    expect(Object.keys(JSON.parse(one).paths)).toEqual(['/a', '/b']);
  });

  it('keeps the order of members, which people read', () => {
    const text = openApiText({
      openapi: '3.1.0',
      info: { title: 'Slipway', version: '1' },
      paths: {},
      components: {
        schemas: { A: { type: 'object', properties: { z: { type: 'string' }, a: { type: 'string' } } } },
      },
    });

    expect(text.indexOf('"z"')).toBeLessThan(text.indexOf('"a"'));
    expect(text.endsWith('}\n')).toBe(true);
  });
});

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
