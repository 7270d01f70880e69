import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { configVariables } from '../../src/config/load-config.js';

const text = readFileSync(path.join(import.meta.dirname, '../../docs/operations.md'), 'utf8');

/** Name -> default, of the rows of the configuration table. */
const documented = new Map(
  [...text.matchAll(/^\| `([A-Z_]+)` +\| *(.*?) *\|/gm)].map(([, name = '', value = '']) => [name, value]),
);

describe('docs/operations.md', () => {
  it('has one row for every environment variable and no other', () => {
    const read = configVariables().map(({ name }) => name);

    expect([...documented.keys()].toSorted()).toEqual(read.toSorted());
  });

  it.each(withDefaults())('gives the default of %s as %s', (name, value) => {
    expect(documented.get(name)).toContain(`\`${value}\``);
  });
});

function withDefaults(): [string, string][] {
  return configVariables().flatMap(({ name, default: value }): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  );
}
