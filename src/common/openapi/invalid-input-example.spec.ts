import { describe, expect, it } from '@jest/globals';
import { invalidInputExample } from './invalid-input-example.js';
import type { Operation, Parameter, Schema, Schemas } from './operations.js';

const SCHEMAS: Schemas = {
  Car: {
    type: 'object',
    properties: { colour: { type: 'string', maxLength: 9 }, name: { type: 'string' } },
    required: ['name'],
  },
  Colour: { type: 'string', enum: ['red', 'blue'] },
};

function query(name: string, schema: Schema, required = false): Parameter {
  return { name, in: 'query', required, schema };
}

const ID: Parameter = { name: 'id', in: 'path', required: true, schema: { type: 'string', maxLength: 9 } };
const UUID: Parameter = { ...ID, schema: { type: 'string', format: 'uuid' } };
const LIMIT = query('limit', { type: 'integer', minimum: 1, maximum: 50 });
const SINCE = query('since', { type: 'string', format: 'date-time' });
const NAME = query('name', { type: 'string', maxLength: 9 });
const COLOUR = { $ref: '#/components/schemas/Colour' };

function taking(parameters: Parameter[], body?: Schema): Operation {
  return {
    responses: {},
    parameters,
    ...(body && { requestBody: { content: { 'application/json': { schema: body } } } }),
  };
}

describe('invalidInputExample', () => {
  it.each<[string, Operation, string[], string]>([
    [
      'a required member',
      taking([ID, LIMIT], { $ref: '#/components/schemas/Car' }),
      ['body', 'name'],
      'missing',
    ],
    ['a required parameter', taking([UUID, LIMIT, query('q', {}, true)]), ['query', 'q'], 'missing'],
    ['one of some words', taking([query('colour', COLOUR, true)]), ['query', 'colour'], 'enum'],
    ['the size of a page', taking([UUID, SINCE, LIMIT]), ['query', 'limit'], 'less_than_equal'],
    ['a format', taking([ID, NAME, SINCE]), ['query', 'since'], 'datetime_parsing'],
    ['an id in the path', taking([UUID]), ['path', 'id'], 'uuid_parsing'],
    ['any text in the path', taking([ID, NAME]), ['path', 'id'], 'string_unicode'],
    ['no JSON where nothing else is known', taking([]), ['body'], 'json_invalid'],
  ])('is about %s', (_what, operation, loc, type) => {
    expect(invalidInputExample(operation, SCHEMAS)).toEqual({ loc, type, msg: expect.any(String) });
  });

  it.each([
    ['name', 'Expected at most 9 characters.'],
    ['limit', 'Expected a number of at most 50.'],
    ['colour', 'Expected one of: red, blue.'],
    ['deep', 'Expected true or false.'],
  ])('is about %s when that is asked for', (named, msg) => {
    const operation = taking([ID, NAME, LIMIT, query('colour', COLOUR), query('deep', { type: 'boolean' })]);

    expect(invalidInputExample(operation, SCHEMAS, named)).toMatchObject({ loc: ['query', named], msg });
  });

  it('is about nothing that does not exist', () => {
    expect(() => invalidInputExample(taking([ID]), SCHEMAS, 'other')).toThrow('other');
  });
});
