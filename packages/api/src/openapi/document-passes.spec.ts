import { describe, expect, it } from '@jest/globals';
import { openApiText } from './document-passes.js';

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
