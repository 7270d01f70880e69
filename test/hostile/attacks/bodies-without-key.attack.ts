import { gzipSync } from 'node:zlib';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const REQUESTS = 10;
const LEVELS = 62;
/** A mebibyte of empty texts in lists: about a kilobyte when it is packed. */
const VALUES = 349_000;
const MAX_GROWTH_MIB = 100;

export const bodiesWithoutKey: Attack = {
  name: 'bodies-without-key',
  finding: 2,
  timed: true,
  what: 'Packed kilobytes that cost gigabytes once they are parsed, ten at a time, without a key and with one, with a heap of 256 MB.',
  expected: { process: held('401 before anything is unpacked, and 413 with a key; nobody else notices') },
  run: async (world) =>
    world.apart({ nodeArgs: ['--max-old-space-size=256'] }, async (apart) => {
      const packed = gzipSync(`${'['.repeat(LEVELS)}${'"",'.repeat(VALUES)}""${']'.repeat(LEVELS)}`);
      const vitals = Vitals.watch(apart);
      const without = await sendAll(apart, packed, {});
      const withKey = await sendAll(apart, packed, { 'X-Session-API-Key': apart.bob.client.key });
      const { held: isWell, seen } = await vitals.end(MAX_GROWTH_MIB);
      return {
        held: isWell && without.every((one) => one === 401) && withKey.every((one) => one === 413),
        seen: `${packed.length} bytes: ${kinds(without)} without a key, ${kinds(withKey)} with one; ${seen}`,
      };
    }),
};

async function sendAll(
  { url }: HostileWorld,
  body: Buffer,
  headers: Record<string, string>,
): Promise<number[]> {
  return Promise.all(
    Array.from({ length: REQUESTS }, async () => {
      const response = await fetch(`${url}/api/settings`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip', ...headers },
        body: new Uint8Array(body),
      });
      await response.arrayBuffer();
      return response.status;
    }),
  );
}

function kinds(statuses: readonly number[]): string {
  return [...new Set(statuses)].join(' and ');
}
