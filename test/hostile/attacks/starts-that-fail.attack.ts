import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { jsonText } from '@slipway/common/json-access.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const STARTS = 160;
const AT_ONCE = 8;
const KEPT = 100;
const LISTS = 10;
const ROUNDS = 3;
const MIB = 1024 * 1024;
const PATH = '/api/v1/app-conversations/start-tasks';

/** As much as a body may have. */
function start(): object {
  const image = `data:image/png;base64,${randomBytes(500_000).toString('base64')}`;
  return {
    initial_message: { content: [{ text: 'Look' }, { type: 'image', image_urls: [image] }] },
    system_message_suffix: randomBytes(125_000).toString('hex'),
  };
}

async function databaseMib({ dataDir }: HostileWorld): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['-sm', dataDir]);
  return Number.parseInt(stdout, 10);
}

/** Bytes of a page as it comes; null: there is no answer. */
async function pageBytes(world: HostileWorld): Promise<number | null> {
  try {
    const response = await fetch(`${world.url}${PATH}/search?limit=100`, {
      headers: { 'X-Session-API-Key': world.bob.client.key },
    });
    const { byteLength } = await response.arrayBuffer();
    return response.ok ? byteLength : null;
  } catch {
    return null;
  }
}

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const { client } = world.bob;
  // Without a model every start fails at once.
  await client.saveSettings({ llm_model: '' });
  const before = await databaseMib(world);
  const vitals = Vitals.watch(world);
  for (let sent = 0; sent < STARTS; sent += AT_ONCE) {
    const ids = await Promise.all(Array.from({ length: AT_ONCE }, () => client.start(start())));
    await Promise.all(ids.map((id) => client.startTaskEnd(id)));
  }
  const count = Number(await client.get(`${PATH}/count`));
  const after = await databaseMib(world);
  const pages: (number | null)[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    pages.push(...(await Promise.all(Array.from({ length: LISTS }, () => pageBytes(world)))));
  }
  const state = await vitals.end(400);
  const answered = pages.filter((bytes) => bytes !== null);
  const largest = Math.max(0, ...answered);
  const isAlive = world.service.isRunning();
  const next = isAlive ? jsonText(await client.get(`${PATH}/search?limit=1`), 'next_page_id') : null;
  return {
    held:
      state.held &&
      count <= KEPT &&
      isAlive &&
      answered.length === pages.length &&
      largest <= 4 * MIB &&
      next !== null,
    seen: `${count} start tasks kept, data folder ${before} -> ${after} MiB; ${answered.length} of ${pages.length} lists answered, at most ${(largest / MIB).toFixed(1)} MiB; service ${isAlive ? 'runs' : 'has ended'}; ${state.seen}`,
  };
}

export const startsThatFail: Attack = {
  name: 'starts-that-fail',
  finding: 4,
  timed: true,
  what: 'Bob starts 160 conversations of 900 KB that fail at once, and lists them ten at a time.',
  expected: { process: held('the newest hundred are kept, and no page is larger than 4 MiB') },
  run: (world) => world.apart({ nodeArgs: ['--max-old-space-size=512'] }, attack),
};
