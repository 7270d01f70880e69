import { describe, expect, it } from '@jest/globals';
import { wholeSchemas } from '../../../../test/support/resolved-document.js';
import { withExtensions } from './schema-rules.js';
import type { Schema } from './operations.js';

const LONG = { type: 'string', description: 'What it is, in many words. '.repeat(20) };

function objectOf(names: string[], required: string[] = []): Schema {
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, LONG])),
    ...(required.length > 0 && { required }),
  };
}

const CAR = objectOf(['name', 'colour'], ['name']);
const OWNED_CAR = objectOf(['name', 'colour', 'owner'], ['name', 'owner']);

describe('withExtensions', () => {
  it('takes the largest of several, whatever their order', () => {
    const schemas = {
      Car: CAR,
      OwnedCar: OWNED_CAR,
      Rented: objectOf(['name', 'colour', 'owner', 'until'], ['name', 'owner']),
    };
    const turned = Object.fromEntries(Object.entries(schemas).toReversed());

    expect(withExtensions(schemas)['Rented']).toMatchObject({
      allOf: [{ $ref: '#/components/schemas/OwnedCar' }, objectOf(['until'])],
    });
    expect(withExtensions(turned)).toEqual(withExtensions(schemas));
    expect(wholeSchemas(withExtensions(schemas))).toEqual({ ...schemas });
  });

  it.each<[string, Schema, Schema]>([
    ['that say the same', CAR, CAR],
    ['with another member of the name', CAR, objectOf(['name', 'owner', 'until'], ['name'])],
    ['that require something else', CAR, objectOf(['name', 'colour', 'owner'], ['name', 'colour'])],
    ['that are closed', { ...CAR, additionalProperties: false }, OWNED_CAR],
    [
      'that are short',
      { type: 'object', properties: { a: {} } },
      { type: 'object', properties: { a: {}, b: {} } },
    ],
  ])('leaves schemas %s alone', (_which, Car, Other) => {
    expect(withExtensions({ Car, Other })).toEqual({ Car, Other });
  });
});
