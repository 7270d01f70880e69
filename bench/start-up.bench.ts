import { execFile } from 'node:child_process';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { npmStart } from './support/started-programs.js';
import { atMost, type Outcome, print, median, spread, timed } from './support/report.js';
import { residentMemoryMb } from './support/process-usage.js';
import { withFolder } from './support/fixtures.js';

const run = promisify(execFile);
const RUNS = 5;
/** Excludes the time that npm takes by itself. */
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
    for (let round = 1; round <= RUNS; round += 1) {
      bare.push(await npmWithEmptyProgram());
      const service = await npmStart(dataDir);
      ready.push(service.readyMs);
      if (round > RUNS - 2) {
        await delay(IDLE_MS);
        idle.push(residentMemoryMb(service.pid));
      }
      await service.stop();
      print(
        `  run ${round}: ready after ${service.readyMs.toFixed(0)} ms, npm with an empty program ${bare.at(-1)?.toFixed(0)} ms`,
      );
    }
    const note = `${spread(ready, 0)} with it`;
    const own = median(ready) - median(bare);
    return [
      atMost('npm start to ready, without the time of npm with an empty program', own, MAX_START_MS, {
        note,
      }),
      atMost('idle resident memory of the service', idle, MAX_IDLE_MB, { unit: 'MB' }),
    ];
  });
}

async function npmWithEmptyProgram(): Promise<number> {
  return await timed(() => run('npm', ['exec', '--call', 'node -e 0']));
}
