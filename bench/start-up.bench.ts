import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { npmStart } from './support/npm-start.js';
import type { Outcome } from './support/outcome.js';
import { print } from './support/print.js';
import { residentMemoryMb } from './support/resident-memory.js';
import { median, spread } from './support/statistics.js';
import { withFolder } from './support/with-folder.js';

const RUNS = 5;
const MOST_MS = 2_000;
const MOST_IDLE_MB = 160;
/** After this long without requests a service counts as idle. */
const IDLE_MS = 5_000;

/** From `npm start` to ready on a database that exists, in turns with npm running an empty program; and memory. */
export async function benchStartUp(): Promise<Outcome[]> {
  return await withFolder(async (folder) => {
    const dataDir = path.join(folder, 'data');
    const first = await npmStart(dataDir);
    await first.stop();
    print(`  first start (makes the database): ${first.readyMs.toFixed(0)} ms`);
    const ready: number[] = [];
    const bare: number[] = [];
    const idle: number[] = [];
    for (let run = 1; run <= RUNS; run += 1) {
      bare.push(npmWithEmptyProgram());
      const service = await npmStart(dataDir);
      ready.push(service.readyMs);
      if (run > RUNS - 2) {
        await delay(IDLE_MS);
        idle.push(residentMemoryMb(service.pid));
      }
      await service.stop();
      print(
        `  run ${run}: ready after ${service.readyMs.toFixed(0)} ms, npm with an empty program ${bare.at(-1)?.toFixed(0)} ms`,
      );
    }
    return [
      {
        what: 'npm start to ready (and against npm with an empty program)',
        target: `<= ${MOST_MS} ms`,
        measured: `${spread(ready, 0)} ms (x${(median(ready) / median(bare)).toFixed(1)})`,
        reached: median(ready) <= MOST_MS,
      },
      {
        what: 'idle resident memory of the service',
        target: `<= ${MOST_IDLE_MB} MB`,
        measured: `${spread(idle, 0)} MB`,
        reached: median(idle) <= MOST_IDLE_MB,
      },
    ];
  });
}

function npmWithEmptyProgram(): number {
  const startedAt = performance.now();
  execFileSync('npm', ['exec', '--call', 'node -e 0'], { stdio: ['ignore', 'ignore', 'ignore'] });
  return performance.now() - startedAt;
}
