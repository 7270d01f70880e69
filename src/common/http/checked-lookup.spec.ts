import type { LookupAddress, LookupOptions } from 'node:dns';
import { describe, expect, it } from '@jest/globals';
import { AddressRefusedError, checkedLookup, type ResolveHost } from './checked-lookup.js';

const PUBLIC: LookupAddress = { address: '93.184.216.34', family: 4 };
const PUBLIC_IPV6: LookupAddress = { address: '2606:4700:4700::1111', family: 6 };
const PRIVATE: LookupAddress = { address: '10.0.0.7', family: 4 };
const LOOPBACK_IPV6: LookupAddress = { address: '::1', family: 6 };

async function run(
  resolve: ResolveHost,
  publicOnly: boolean,
  options: LookupOptions = { all: true },
): Promise<{ address: string | LookupAddress[]; family: number | undefined }> {
  return await new Promise((settle, reject) => {
    checkedLookup(resolve, publicOnly)('git.example.com', options, (error, address, family) => {
      if (error) {
        reject(error);
      } else {
        settle({ address, family });
      }
    });
  });
}

describe('checkedLookup', () => {
  it.each<[string, LookupAddress[]]>([
    ['one public address', [PUBLIC]],
    ['public addresses of both families', [PUBLIC_IPV6, PUBLIC]],
  ])('hands on %s', async (_name, addresses) => {
    expect(await run(() => Promise.resolve(addresses), true)).toEqual({ address: addresses });
  });

  it('hands on the first address where one is asked for', async () => {
    const answer = await run(() => Promise.resolve([PUBLIC_IPV6, PUBLIC]), true, { all: false });

    expect(answer).toEqual({ address: PUBLIC_IPV6.address, family: 6 });
  });

  it.each<[string, LookupAddress[]]>([
    ['a private address', [PRIVATE]],
    ['a private address behind a public one', [PUBLIC, PRIVATE]],
    ['a private address before a public one', [LOOPBACK_IPV6, PUBLIC]],
  ])('refuses %s', async (_name, addresses) => {
    await expect(run(() => Promise.resolve(addresses), true)).rejects.toBeInstanceOf(AddressRefusedError);
    await expect(run(() => Promise.resolve(addresses), false)).resolves.toEqual({ address: addresses });
  });

  it('resolves once, so the name cannot change its mind between check and use', async () => {
    const answers = [[PUBLIC], [PRIVATE]];
    let asked = 0;
    const rebinding: ResolveHost = () => Promise.resolve(answers[asked++] ?? []);

    expect(await run(rebinding, true)).toEqual({ address: [PUBLIC] });
    expect(asked).toBe(1);
    await expect(run(rebinding, true)).rejects.toBeInstanceOf(AddressRefusedError);
  });

  it.each([true, false])('fails for a name without addresses (public only: %s)', async (publicOnly) => {
    await expect(run(() => Promise.resolve([]), publicOnly)).rejects.toThrow('no address');
  });

  it('hands on why a name did not resolve', async () => {
    const failure = Object.assign(new Error('not found'), { code: 'ENOTFOUND' });

    await expect(run(() => Promise.reject(failure), true)).rejects.toBe(failure);
  });
});
