import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { AUDIT_ACTION_NAMES } from './audit-action.js';

const PAGE = path.join(import.meta.dirname, '../../docs/operations/run.md');

describe('audit actions', () => {
  it('are all in the table of the operators, and no others', () => {
    const [, table = ''] = readFileSync(PAGE, 'utf8').split(/^\| resource +\| actions +\|$/m);
    const [rows = ''] = table.trimStart().split('\n\n');
    const named = [...rows.matchAll(/^\| `(\w+)` +\| (.*)\|$/gm)].flatMap(([, resource = '', actions = '']) =>
      [...actions.matchAll(/`(\w+)`/g)].map(([, action = '']) => `${resource}.${action}`),
    );

    expect(named.toSorted()).toEqual(AUDIT_ACTION_NAMES.toSorted());
  });
});
