import { type FileHandle, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { NoDisk, onSmallDisk } from '../../support/small-disk.js';
import { NotTried, type Outcome, type Scenario } from '../scenario.js';
import { ChaosWorld, statusOf } from '../support/chaos-world.js';

/** Room for the database with its reserve, and for sandboxes with what has to be free beside them. */
const DISK = '1600m';
const MIB = 2 ** 20;
const FULL_MS = 8_000;
/** On a full disk starts end with that answer, and a sandbox ends that cannot write; neither is stuck, nothing acknowledged is lost. */
const WANTED_START = /^a start: .*(the disk of DATA_DIR has|Its program ended by itself)/s;
const WANTED = /sandbox_not_running|Unexpected server response: 404/;

export const diskFull: Scenario = {
  name: 'disk-full',
  what: 'The disk of the embedded database and of the sandboxes is filled to the last byte, and has room again later.',
  isShort: false,
  run: async ({ rounds }) => {
    try {
      return await onSmallDisk(DISK, async (disk) =>
        fillUnderLoad(path.join(disk, 'filler'), Math.ceil(rounds / 5)),
      );
    } catch (error) {
      throw error instanceof NoDisk ? new NotTried(error.message, { cause: error }) : error;
    }
  },
};

async function fillUnderLoad(filler: string, times: number): Promise<Outcome> {
  return await ChaosWorld.with({ embedded: true }, async (world) => {
    await world.start();
    const outcome = await world.underLoad(async () => {
      for (let time = 0; time < times; time += 1) {
        await wait(2_000);
        await world.tally.duringFault(async () => {
          await fill(filler);
          await wait(FULL_MS);
          const live = await statusOf(`${world.url}/health/live`);
          if (live !== 200) {
            world.problems.push(`on a full disk liveness was ${live}`);
          }
          await rm(filler);
          await world.untilReady();
        });
        await wait(2_000);
      }
    });
    const ended = outcome.problems.filter((problem) => WANTED_START.test(problem));
    const unexpected = outcome.problems.filter(
      (problem) => !WANTED_START.test(problem) && !WANTED.test(problem),
    );
    return {
      ...outcome,
      stuck: outcome.stuck - ended.length,
      problems: unexpected,
      notes: [...outcome.notes, `starts that ended for want of room ${ended.length}`],
    };
  });
}

async function fill(file: string): Promise<void> {
  const handle = await open(file, 'a');
  try {
    for (const chunk of [Buffer.alloc(MIB), Buffer.alloc(4096)]) {
      await writeUntilRefused(handle, chunk);
    }
  } finally {
    await handle.close();
  }
}

async function writeUntilRefused(handle: FileHandle, chunk: Buffer): Promise<void> {
  for (;;) {
    try {
      await handle.write(chunk);
    } catch (error) {
      if (errorCode(error) !== 'ENOSPC') {
        throw error;
      }
      return;
    }
  }
}
