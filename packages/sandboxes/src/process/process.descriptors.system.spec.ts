import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { inheritedEnvironment } from '../../../../test/support/service-process.js';
import { until } from '../../../../test/support/until.js';
import { type ProcessHarness, processHarness, sandboxLaunch } from './process.sandbox-backend.harness.js';

const ISOLATIONS =
  spawnSync('bwrap', ['--version']).status === 0 ? (['none', 'bwrap'] as const) : (['none'] as const);
const LOADER = fileURLToPath(new URL('../../../../scripts/lib/typescript-loader.cjs', import.meta.url));
const STARTER = fileURLToPath(new URL('../../../../test/fakes/start-sandbox.ts', import.meta.url));
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
    const launch = sandboxLaunch({
      program: { kind: 'command', command: process.execPath, args: ['-e', LOOK] },
    });
    const secret = openSync(file, 'r');
    try {
      const stdio = Array.from({ length: number + 1 }, () => 'ignore' as const);
      const service = spawnSync(process.execPath, ['--require', LOADER, STARTER], {
        env: inheritedEnvironment(),
        input: JSON.stringify({ options: harness.options, launch }),
        stdio: ['pipe', 'pipe', 'pipe', ...stdio.slice(3, number), secret],
      });
      expect(service.signal).toBe('SIGKILL');
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
