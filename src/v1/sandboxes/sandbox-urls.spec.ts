import { describe, expect, it } from '@jest/globals';
import { parseHostLabel, toHostLabels } from './sandbox-urls.js';

describe('host names of ports', () => {
  it.each([
    ['3Yv5mQ8hZk2LrTnBx7Wc0d', 'WORKER_1'],
    ['zzzzzzzzzzzzzzzzzzzzzz', 'WORKER_99'],
    ['0000000000000000000000', 'DEV_SERVER_3'],
    ['0', 'APP_1'],
    ['00', 'APP_1'],
  ])('%s %s', (sandboxId, name) => {
    const [label = ''] = toHostLabels(sandboxId, [name]);
    expect(label).toMatch(/^[a-z0-9-]{1,63}$/);
    expect(parseHostLabel(label)).toEqual({ sandboxId, name });
  });

  it('tells ids apart that differ in case or in leading zeros only', () => {
    const labels = ['a', 'A', '0a', '00a'].flatMap((sandboxId) => toHostLabels(sandboxId, ['APP_1']));
    expect(new Set(labels).size).toBe(4);
  });

  it('reads what it is to stay as it is', () => {
    // Addresses are kept in bookmarks.
    expect(toHostLabels('Ab1', ['WORKER_1', 'DEV_SERVER_2'])).toEqual(['worker-1-5zbr', 'dev-server-2-5zbr']);
  });

  it.each(['', 'www', 'worker-1', 'worker-1-', 'worker-1-0', 'worker-1-1', 'worker-01-abcd', 'worker-1-a.b'])(
    'none: %s',
    (label) => {
      expect(parseHostLabel(label)).toBeNull();
    },
  );
});
