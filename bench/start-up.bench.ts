import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { npmStart } from './support/started-programs.js';
import { type Outcome, print, median, spread } from './support/report.js';
import { residentMemoryMb } from './support/process-usage.js';
import { withFolder } from './support/fixtures.js';

const RUNS = 5;
/** Without the time that npm takes by itself. */
const MAX_START_MS = 1_200;
const MAX_IDLE_MB = 160;
/** After this time without requests a service counts as idle. */
const IDLE_MS = 5_000;

/** The time from `npm start` to ready on an existing database, in turns with npm running an empty program; and memory. */
export async function benchStartUp(): Promise<Outcome[]> {
  return await withFolder(async (folder) => {
    const dataDir = path.join(folder, 'data');
    const first = await npmStart(dataDir);
    await first.stop();
    print(`  first start (creates the database): ${first.readyMs.toFixed(0)} ms`);
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
    const own = median(ready) - median(bare);
    return [
      {
        what: 'npm start to ready, without the time of npm with an empty program',
        target: `<= ${MAX_START_MS} ms`,
        measured: `${own.toFixed(0)} ms (${spread(ready, 0)} with it)`,
        reached: own <= MAX_START_MS,
      },
      {
        what: 'idle resident memory of the service',
        target: `<= ${MAX_IDLE_MB} MB`,
        measured: `${spread(idle, 0)} MB`,
        reached: median(idle) <= MAX_IDLE_MB,
      },
    ];
  });
}

function npmWithEmptyProgram(): number {
  const startedAt = performance.now();
  execFileSync('npm', ['exec', '--call', 'node -e 0'], { stdio: ['ignore', 'ignore', 'ignore'] });
  return performance.now() - startedAt;
}
