import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@slipway/common/json-access.js';
import { asList, placesOf } from '../support/request-places.js';
import { committedDocument } from '../support/resolved-document.js';

const BOUNDED_FORMATS = ['uuid', 'date-time', 'date', 'time', 'ipv4', 'ipv6'];

describe('what a request may hold', () => {
  it('is bounded: every text, list and map', () => {
    const places = placesOf(committedDocument());
    const unbounded = places.filter(({ schema }) => !isBounded(schema)).map(({ name }) => name);

    expect(places.length).toBeGreaterThan(500);
    expect(unbounded).toEqual([]);
  });
});

function isBounded(schema: JsonObject): boolean {
  const types = asList(schema['type'] ?? []);
  const { enum: words, const: word, format, pattern, properties, additionalProperties: others } = schema;
  const has = (bound: string): boolean => typeof schema[bound] === 'number';
  if (words !== undefined || word !== undefined) {
    return true;
  }
  const isOpen = properties === undefined || (others !== undefined && others !== false);
  return (
    (!types.includes('string') ||
      has('maxLength') ||
      BOUNDED_FORMATS.includes(String(format)) ||
      (typeof pattern === 'string' && /^\^.*\$$/.test(pattern) && !/[*+]|\{\d+,\}/.test(pattern))) &&
    (!types.includes('array') || has('maxItems')) &&
    (!types.includes('object') || !isOpen || has('maxProperties'))
  );
}
