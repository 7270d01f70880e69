import { setTimeout as wait } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import { onSmallDisk } from '../../support/small-disk.js';
import { type Attack, held, ofService } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

/** Room for the database with its reserve, for sandboxes, and for what Bob writes until he is stopped. */
const DISK = '900m';
/** Bounds what hangs: on a quiet machine it takes some seconds. */
const ATTACK_MS = 300_000;
const ENOUGH_SUCCESSES = 10;
const PAUSE_MS = 100;

export const fullDisk: Attack = {
  name: 'full-disk',
  finding: 11,
  what: 'Bob fills the disk that the database is on, to the last byte, and goes on writing.',
  expected: ofService(held('Alice goes on writing, or is told what is wrong until she can')),
  // The service's folder is made there.
  run: async (world) => onSmallDisk(DISK, async () => world.apart({}, fillAndWrite)),
};

async function fillAndWrite(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { alice, bob } = world;
  await bob.client.agentServer(bob.sandboxId, 'POST', '/api/bash/start_bash_command', {
    command: 'while :; do dd if=/dev/zero of="$HOME/$RANDOM$RANDOM" bs=1M; done',
    timeout: 600,
  });
  const seen = new Map<string, number>();
  const began = performance.now();
  let successes = 0;
  let fullSeen = false;
  let longestMs = 0;
  let lastSuccess = began;
  // Until the disk has been full and Alice writes again, or Bob was stopped before it was.
  while (
    performance.now() - began < ATTACK_MS &&
    !(successes >= ENOUGH_SUCCESSES && (fullSeen || (await stopped(world))))
  ) {
    const { status, body } = await alice.send('POST', '/api/secrets', {
      name: `W${Math.round(performance.now())}`,
      value: 'x'.repeat(2_000),
    });
    const outcome = status < 300 ? 'stored' : `${status} ${jsonText(body, 'code') ?? ''}`;
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
    if (status < 300) {
      successes += 1;
      longestMs = Math.max(longestMs, performance.now() - lastSuccess);
      lastSuccess = performance.now();
    } else {
      successes = 0;
      fullSeen = true;
    }
    await wait(PAUSE_MS);
  }
  const counts = [...seen].map(([outcome, count]) => `${outcome}: ${count}`).join(', ');
  const unreachable = seen.get('503 unavailable') ?? 0;
  return {
    held: successes >= ENOUGH_SUCCESSES && unreachable === 0 && world.service.isRunning(),
    seen: `${counts}; at most ${Math.round(longestMs / 100) / 10} s without a write; Bob ${(await stopped(world)) ? 'was stopped' : 'still runs'}`,
  };
}

async function stopped({ bob }: HostileWorld): Promise<boolean> {
  return jsonText(await bob.sandbox(), 'status') !== 'RUNNING';
}
