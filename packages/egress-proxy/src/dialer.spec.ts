import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { samplePolicy, target } from '../test/support/sample-policy.js';
import { Dialer, isWithinNetwork } from './dialer.js';
import { RefusedError } from './refusal.js';

describe('names that nobody resolves', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it('occupy no more threads when their time is up, and a bounded queue', async () => {
    const asked: string[] = [];
    const dialer = new Dialer({
      ownPorts: () => [],
      resolve: (host) => {
        asked.push(host);
        return Promise.withResolvers<never>().promise;
      },
    });
    const dial = async (): Promise<unknown> =>
      await dialer.dial(samplePolicy(), target('https://slow.example')).catch((error: unknown) => error);
    const dialling = Array.from({ length: 4 + 512 }, dial);
    await jest.advanceTimersByTimeAsync(0);
    expect(await dial()).toMatchObject({ status: 503 });
    await jest.advanceTimersByTimeAsync(10_000);
    const results = await Promise.all(dialling);
    expect(results.every((error) => error instanceof RefusedError && error.status === 502)).toBe(true);
    expect(asked).toHaveLength(4);
  });
});

it.each<[string[], boolean]>([
  [[], false],
  [['10.1.2.3:443', 'other.example:443'], false],
  [['host.example'], true],
  [['host.example:443'], true],
  [['10.0.0.0/8'], true],
])('has names asked of name servers, unless they may be in %j: %s', async (networks, isOfOperator) => {
  const asked: [string, boolean][] = [];
  const dialer = new Dialer({
    ownPorts: () => [],
    resolve: async (...question) => {
      asked.push(question);
      return [];
    },
  });
  const dialled = dialer.dial(samplePolicy({ networks }), target('https://host.example'));
  await expect(dialled).rejects.toMatchObject({ denial: 'address' });
  expect(asked).toEqual([['host.example', isOfOperator]]);
});

describe('an address of this machine', () => {
  const interfaces = {
    eth0: [{ address: '8.8.8.8' }, { address: '2606:4700::1' }],
  };

  it.each<[string, string[], boolean]>([
    ['8.8.8.8', [], false],
    ['::ffff:8.8.8.8', [], false],
    ['2606:4700::1', [], false],
    ['8.8.8.8', ['8.8.8.8:5432'], true],
    ['8.8.4.4', [], true],
  ])('%s, of which %j is opened: %s', (address, networks, isDialled) => {
    const dialer = new Dialer({ ownPorts: () => [], interfaces: () => interfaces });
    expect(dialer.mayDial(address, target('https://host.example:5432'), samplePolicy({ networks }))).toBe(
      isDialled,
    );
  });
});

describe('isWithinNetwork', () => {
  it.each<[string, string, number, boolean]>([
    ['10.0.0.0/8', '10.1.2.3', 443, true],
    ['10.0.0.0/8', '11.1.2.3', 443, false],
    ['10.0.0.0/8', '::ffff:10.1.2.3', 443, true],
    ['fd00::/8', 'fd12::1', 443, true],
    ['fd00::/8', '10.1.2.3', 443, false],
    ['10.1.2.3', '10.1.2.3', 1, true],
    ['10.1.2.3:5432', '10.1.2.3', 5432, true],
    ['10.1.2.3:5432', '10.1.2.3', 5433, false],
    ['[fd00::1]:443', 'fd00::1', 443, true],
    ['[fd00::1]:443', 'fd00::1', 444, false],
    ['fd00:0::1', 'fd00::1', 444, true],
    ['host.example', '10.1.2.3', 443, true],
    ['host.example:443', '10.1.2.3', 443, true],
    ['host.example:80', '10.1.2.3', 443, false],
    ['other.example', '10.1.2.3', 443, false],
    ['', '10.1.2.3', 443, false],
  ])('%s has %s:%d: %s', (entry, address, port, isWithin) => {
    expect(isWithinNetwork(entry, { address, host: 'host.example', port })).toBe(isWithin);
  });
});
