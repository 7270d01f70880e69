import { closeSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { until } from '../../../../test/support/until.js';
import {
  ISOLATIONS,
  nodeLaunch,
  type ProcessHarness,
  processHarness,
  startElsewhere,
} from './process.sandbox-backend.harness.js';

/** Names what a process of the sandbox has open. */
const LOOK = `
  const open = fs.readdirSync('/proc/self/fd').flatMap((fd) => {
    try { return [fd + ' ' + fs.readlinkSync('/proc/self/fd/' + fd)]; } catch { return []; }
  });
  console.log(open.join('\\n')); console.log('looked'); setInterval(() => {}, 1000);`;

describe.each(ISOLATIONS)('descriptors that the service was started with, isolation %s', (isolation) => {
  let harness: ProcessHarness;

  beforeAll(async () => {
    harness = await processHarness(isolation);
  });

  afterAll(async () => {
    await harness.close();
  });

  it.each([20, 40, 300])('%d is not open in its sandboxes', async (number) => {
    const file = path.join(harness.dataDir, 'for-root');
    await writeFile(file, 'a text for root only', { mode: 0o600 });
    const launch = nodeLaunch(LOOK);
    const secret = openSync(file, 'r');
    try {
      const stdio = Array.from({ length: number + 1 }, () => 'ignore' as const);
      const given = ['pipe', 'pipe', 'pipe', ...stdio.slice(3, number), secret] as const;
      expect(startElsewhere(harness.options, launch, [...given]).signal).toBe('SIGKILL');
    } finally {
      closeSync(secret);
    }
    let log = '';
    await until(async () => {
      log = await harness.backend.logTail(launch.id);
      return log.endsWith('looked\n');
    });
    expect(log).not.toContain('for-root');
  });
});
