import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { getMetadataStorage } from 'class-validator';
import { Environment } from '../../src/config/environment.js';

const text = readFileSync(path.join(import.meta.dirname, '../../docs/operations.md'), 'utf8');

/** Name -> default, of the rows of the configuration table. */
const documented = new Map(
  [...text.matchAll(/^\| `([A-Z_]+)` +\| *(.*?) *\|/gm)].map(([, name = '', value = '']) => [name, value]),
);

describe('docs/operations.md', () => {
  it('has one row for every environment variable and no other', () => {
    const rules = getMetadataStorage().getTargetValidationMetadatas(Environment, '', false, false);
    const read = new Set(rules.map(({ propertyName }) => propertyName));

    expect([...documented.keys()].toSorted()).toEqual([...read].toSorted());
  });

  it.each(Object.entries(new Environment()))('gives the default of %s as %s', (name, value: unknown) => {
    expect(documented.get(name)).toContain(`\`${String(value)}\``);
  });
});
