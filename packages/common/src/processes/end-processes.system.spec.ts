import { afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { endProcesses, viewTree, startTimeOf } from './end-processes.js';

const IS_ROOT = process.getuid?.() === 0;
const MARKER = 'SLIPWAY_TEST_MARKER=end-processes';
const [OWN, OTHER] = [1_913_999_001, 1_913_999_002];

/** Only root can start programs as another user. */
(IS_ROOT ? describe : describe.skip)('processes of a user', () => {
  const children: ChildProcess[] = [];

  afterEach(async () => {
    const living = children.splice(0).filter(({ exitCode, signalCode }) => (exitCode ?? signalCode) === null);
    const ended = living.map(async (child) => await once(child, 'exit'));
    living.forEach((child) => child.kill('SIGKILL'));
    await Promise.all(ended);
  });

  async function start(uid: number, marker: string | null): Promise<ChildProcess> {
    const [name = '', value = ''] = (marker ?? 'NONE=').split('=');
    // A child of its own would outlive it, stopped, and hold its pipe.
    const child = spawn('/bin/sh', ['-c', 'echo ready; read -r line'], {
      uid,
      gid: uid,
      cwd: '/',
      env: { PATH: '/usr/bin:/bin', [name]: value },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    children.push(child);
    await once(child.stdout, 'data');
    return child;
  }

  const pidsOf = (user: number | null) =>
    viewTree({ root: null, marker: MARKER, user })?.members.map(({ pid }) => pid) ?? [];

  it('are its own, and not those of another user who copied the marker', async () => {
    const own = await start(OWN, null);
    const copied = await start(OTHER, MARKER);
    expect(pidsOf(OWN)).toContain(own.pid);
    expect(pidsOf(OWN)).not.toContain(copied.pid);
    // Without a user of its own, the marker is all that there is.
    expect(pidsOf(null)).toContain(copied.pid);
    const ended = once(own, 'exit');
    expect(await endProcesses({ root: null, marker: MARKER, user: OWN })).toBe(true);
    await ended;
    expect(copied.exitCode ?? copied.signalCode).toBeNull();
    expect(pidsOf(null)).toContain(copied.pid);
  });

  it('are left alone when it turns out before a signal that they are of a later tree', async () => {
    const later = await start(OWN, null);
    for (const questions of [1, 2]) {
      let asked = 0;
      const confirm = async (): Promise<void> => {
        asked += 1;
        await (asked === questions ? Promise.reject(new Error('started again')) : Promise.resolve());
      };
      const ending = endProcesses({ root: null, marker: MARKER, user: OWN }, confirm);
      await expect(ending).rejects.toThrow('started again');
    }
    expect(later.exitCode ?? later.signalCode).toBeNull();
  });

  it('are as old as the process that the marker was made for, or younger', async () => {
    const { pid = 0 } = await start(OWN, MARKER);
    const started = Number(startTimeOf(pid));
    const pidsSince = (since: number) =>
      viewTree({ root: null, marker: MARKER, user: null, since: String(since) })?.members.map(
        (member) => member.pid,
      );
    expect(pidsSince(started)).toContain(pid);
    expect(pidsSince(started + 1)).not.toContain(pid);
  });
});
