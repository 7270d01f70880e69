import { describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const RELAY = fileURLToPath(new URL('../../../dist/bundle/agent-server/relay.main.js', import.meta.url));

/** What a shell sees of a relay that runs a program. */
function relay(...command: string[]): { status: number | null; stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, [RELAY, '--', ...command], { encoding: 'utf8' });
  return { status, stderr };
}

describe('relay.main', () => {
  it('ends as its program ends', () => {
    expect(relay('sh', '-c', 'exit 3').status).toBe(3);
    expect(relay('sh', '-c', 'kill -KILL $$').status).toBe(128 + 9);
  });

  it('says that it cannot run a program', () => {
    expect(relay('/no/such/program')).toEqual({
      status: 127,
      stderr: expect.stringContaining('/no/such/program cannot be run'),
    });
  });

  it('passes on a signal that comes as soon as there is a program', () => {
    const script = 'trap "exit 5" TERM; kill -TERM $PPID; for i in $(seq 100); do sleep 0.01; done';
    // One relay in three was too late when it listened after the start of its program.
    const statuses = Array.from({ length: 8 }, () => relay('sh', '-c', script).status);
    expect(statuses).toEqual(Array.from({ length: 8 }, () => 5));
  });
});
