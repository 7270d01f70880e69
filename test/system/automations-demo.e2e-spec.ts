import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, jest } from '@jest/globals';
import { inheritedEnvironment } from '../support/service-process.js';

const ROOT = path.join(__dirname, '../..');

/** The command itself, which fails unless the pull request ends green: the built service and a real sandbox. */
describe('npm run demo -- automations', () => {
  jest.setTimeout(300_000);

  it('tells how a label becomes a green pull request after a failing check and a comment', async () => {
    const program = ['scripts/run-typescript.mjs', 'demo/demo.ts', 'automations', '--once'];
    const { stdout: told } = await promisify(execFile)(process.execPath, program, {
      cwd: ROOT,
      env: inheritedEnvironment(),
    });
    expect(told).toMatch(/From the event to the start it took \d+ ms\./);
    const steps = [
      'GitHub sends issues labeled',
      'Opened pull request 18',
      'GitHub sends check_run completed failure',
      'working, round 1',
      'FAIL: 01067 is printed as 00567',
      'GitHub sends pull_request_review_comment created',
      'working, round 2',
      'Comment by tom on label.sh, line 2:',
      'Tom resolves his thread, where he reads: Without a postcode the script now fails',
      'reached, round 2',
    ];
    const places = steps.map((step) => told.indexOf(step));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });
});
