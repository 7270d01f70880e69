import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { viewTree } from '@slipway/common/processes/end-processes.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { untilStopped } from '../sandbox-backend.harness.js';
import { probeBubblewrap } from './isolation-probe.js';
import { ProcessSandboxBackend } from './process.backend.js';
import { sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { sandboxFetch } from '../../../../test/support/sandbox-fetch.js';
import { until } from '../../../../test/support/until.js';
import {
  ISOLATIONS,
  nodeLaunch,
  type ProcessHarness,
  processHarness,
  sandboxLaunch,
  shellLaunch,
  startElsewhere,
} from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;

describe.each(ISOLATIONS)('process backend, isolation %s', (isolation) => {
  let harness: ProcessHarness;

  beforeAll(async () => {
    harness = await processHarness(isolation);
  });

  afterEach(async () => {
    await harness.clear();
  });

  afterAll(async () => {
    await harness.close();
  });

  const at = (id: string, ...names: string[]) => path.join(harness.options.folder, id, ...names);
  const processesOf = (id: string) =>
    viewTree({ root: null, marker: `SLIPWAY_SANDBOX=instance-of-a-test/${id}`, user: null })?.members ?? [];

  it('reports its isolation', async () => {
    expect(harness.backend.isolation).toBe(isolation);
    const notices = (await harness.backend.prepare()).map(({ text }) => text).join('\n');
    expect(notices).toContain(isolation === 'none' ? 'NOT ISOLATED' : 'bubblewrap');
  });

  it('keeps running when the service that started it is killed', async () => {
    const launch = harness.launch();
    const service = startElsewhere(harness.options, launch);
    expect(service.stderr.replaceAll(/^.*(Warning|trace-warnings).*\n/gm, '')).toBe('');
    expect(service.signal).toBe('SIGKILL');
    const client = await sandboxAnswers(harness.backend, launch);
    expect((await client.run('echo here')).stdout).toBe('here\n');
    await harness.backend.pause(launch.id);
    expect(processesOf(launch.id)).toEqual([]);
    expect(await harness.backend.inspect(launch.id)).toMatchObject({
      state: 'stopped',
      // Only bubblewrap waited for it.
      exit: isolation === 'bwrap' ? { code: 0, signal: null } : null,
    });
  });

  it('ends everything that an ended program leaves behind', async () => {
    const launch = shellLaunch('setsid sleep 1000 & (setsid sleep 1000 &) ; exit 0');
    await harness.backend.start(launch, SIGNAL);
    await untilStopped(harness.backend, launch.id);
    await until(() => processesOf(launch.id).length === 0);
    expect(await harness.backend.inspect(launch.id)).toMatchObject({ exit: { code: 0 } });
  });

  it('reports the signal that ended a program', async () => {
    const launch = shellLaunch('kill -KILL $$');
    await harness.backend.start(launch, SIGNAL);
    await untilStopped(harness.backend, launch.id);
    expect(await harness.backend.inspect(launch.id)).toMatchObject({
      exit: { code: null, signal: 'SIGKILL' },
    });
  });

  it('gives a program its grace time', async () => {
    const wait = 'echo ready > ready; while :; do sleep 0.01; done';
    const launch = shellLaunch(`trap "echo polite > end; exit 5" TERM; cd workspace; ${wait}`);
    await harness.backend.start(launch, SIGNAL);
    await until(() => existsSync(at(launch.id, 'box/workspace/ready')));
    await harness.backend.pause(launch.id);
    expect(await readFile(at(launch.id, 'box/workspace/end'), 'utf8')).toBe('polite\n');
    expect(await harness.backend.inspect(launch.id)).toMatchObject({ state: 'stopped', exit: { code: 5 } });
  });

  it('kills a program that ignores SIGTERM', async () => {
    const backend = await harness.reopen({ graceMs: 50 });
    const launch = shellLaunch('trap "" TERM; while :; do sleep 0.01; done');
    await backend.start(launch, SIGNAL);
    await until(() => processesOf(launch.id).length > 0);
    await backend.pause(launch.id);
    expect(processesOf(launch.id)).toEqual([]);
  });

  it('runs another program on a port that it picks, with the variables that the program reads', async () => {
    const script = `require('node:http')
      .createServer((request, response) => response.end(JSON.stringify(process.env)))
      .listen({port}, '127.0.0.1')`;
    const callbackUrl = 'http://127.0.0.1:9/api/v1/webhooks';
    const launch = nodeLaunch(script, { env: { FROM_SPEC: '1' }, callbackUrl });
    await harness.backend.start(launch, SIGNAL);
    const { address } = await sandboxAnswers(harness.backend, launch);
    const env: unknown = await (await sandboxFetch(address, '/')).json();
    expect(env).toMatchObject({
      PORT: address.startsWith('unix:') ? '8000' : new URL(address).port,
      FROM_SPEC: '1',
      HOME: at(launch.id, 'box/home'),
      OH_SESSION_API_KEYS_0: launch.sessionKey,
      OH_WEBHOOKS_0_BASE_URL: callbackUrl,
    });
    expect(env).not.toHaveProperty('DATABASE_URL');
  });

  it('does not run as root', async () => {
    const clients = await Promise.all(
      [harness.launch(), harness.launch()].map(async (launch) => {
        await harness.backend.start(launch, SIGNAL);
        return await sandboxAnswers(harness.backend, launch);
      }),
    );
    const users = await Promise.all(clients.map(async (client) => (await client.run('id -u')).stdout.trim()));
    expect(users).not.toContain('0');
    // Only root can give each sandbox a user of its own.
    expect(new Set(users).size).toBe(process.getuid?.() === 0 ? 2 : 1);
  });

  if (isolation === ISOLATIONS.at(-1)) {
    describe('whatever keeps sandboxes apart', () => {
      it('ends nothing of a start that another service made while this one stalled in a pause', async () => {
        // The same processes from the start to the end: a loop of short ones would be another set at each look.
        const wait = '(trap "" TERM; exec sleep 1000) & echo ready > ready; while :; do wait; done';
        const launch = shellLaunch(`trap "echo asked > asked" TERM; cd workspace; ${wait}`);
        await harness.backend.start(launch, SIGNAL);
        const ready = at(launch.id, 'box/workspace/ready');
        await until(() => existsSync(ready));
        const pause = harness.backend.pause(launch.id);
        await until(() => existsSync(at(launch.id, 'box/workspace/asked')));
        rmSync(ready);
        startElsewhere({ ...harness.options, graceMs: 0 }, launch);
        // This process, and the pause in it, stand still until the other start has all its processes.
        spawnSync('sh', ['-c', 'until [ -e "$0" ]; do sleep 0.01; done', ready]);
        const started = processesOf(launch.id);
        await expect(pause).rejects.toThrow(/started again/);
        expect(processesOf(launch.id).map(({ pid }) => pid)).toEqual(
          expect.arrayContaining(started.map(({ pid }) => pid)),
        );
        expect(await harness.backend.inspect(launch.id)).toMatchObject({ state: 'running' });
      });

      it('mistakes no other process for its own', async () => {
        const launch = harness.launch();
        await harness.backend.start(launch, SIGNAL);
        await harness.backend.pause(launch.id);
        // As if the pid had been reused by this process.
        const record: object = JSON.parse(await readFile(at(launch.id, 'program.json'), 'utf8'));
        await writeFile(at(launch.id, 'program.json'), JSON.stringify({ ...record, pid: process.pid }));
        expect(await harness.backend.inspect(launch.id)).toMatchObject({ state: 'stopped', address: null });
        await harness.backend.remove(launch.id);
        expect(existsSync(at(launch.id))).toBe(false);
      });

      it('starts one program only, even if the first start was interrupted before it was recorded', async () => {
        const launch = harness.launch();
        await harness.backend.start(launch, SIGNAL);
        await sandboxAnswers(harness.backend, launch);
        const before = new Set(processesOf(launch.id).map(({ pid }) => pid));
        await rm(at(launch.id, 'program.json'));
        await harness.backend.start(launch, SIGNAL);
        const second = await sandboxAnswers(harness.backend, launch);
        expect((await second.run('true')).exitCode).toBe(0);
        expect(processesOf(launch.id).filter(({ pid }) => before.has(pid))).toEqual([]);
      });

      it('finishes a start that was interrupted while it created the folder', async () => {
        const launch = harness.launch();
        await mkdir(at(launch.id, 'box'), { recursive: true });
        expect(await harness.backend.inspect(launch.id)).toMatchObject({ state: 'stopped', createdAt: null });
        await harness.backend.start(launch, SIGNAL);
        expect((await (await sandboxAnswers(harness.backend, launch)).run('echo x > y')).exitCode).toBe(0);
      });

      it('reports what it cannot apply, and refuses what it must not run', async () => {
        const { backend } = harness;
        const lines: string[] = [];
        const launch = shellLaunch('exit 0', { runtime: 'runsc', onShortfall: (line) => lines.push(line) });
        await backend.start(launch, SIGNAL);
        expect(lines).toEqual([
          'The process backend cannot apply the container runtime of the sandbox specification.',
        ]);
        const image = sandboxLaunch({ program: { kind: 'image', image: 'i:1', args: [] } });
        await expect(backend.start(image, SIGNAL)).rejects.toThrow('cannot run the image i:1');
        await expect(backend.start(sandboxLaunch({ workingDir: '/etc' }), SIGNAL)).rejects.toThrow(
          'working_dir',
        );
        await expect(backend.start(sandboxLaunch({ id: '../x' }), SIGNAL)).rejects.toThrow(
          SandboxBackendError,
        );
        expect(await backend.list()).toMatchObject([{ id: launch.id }]);
      });

      it('starts nothing on a full disk', async () => {
        const fileLimits = { ...harness.options.fileLimits, minFreeBytes: Number.MAX_SAFE_INTEGER };
        const backend = await harness.reopen({ fileLimits });
        await expect(backend.start(harness.launch(), SIGNAL)).rejects.toThrow(/has \d+ MB free/);
        expect(await backend.list()).toEqual([]);
      });

      it('ignores the sandboxes of another installation or machine', async () => {
        const launch = harness.launch();
        await harness.backend.start(launch, SIGNAL);
        for (const other of [{ instanceId: 'another' }, { hostId: 'another' }]) {
          const backend = await harness.reopen(other);
          expect(await backend.list()).toEqual([]);
        }
        expect(await harness.backend.list()).toHaveLength(1);
      });

      it('refuses to prepare where its programs cannot be read', async () => {
        const agentServer = {
          ...harness.options.agentServer,
          entry: '/no/such/dist/bundle/agent-server/main.js',
        };
        await expect(harness.reopen({ agentServer })).rejects.toThrow(/main\.js cannot be read/);
      });

      it('survives programs that cannot be started', async () => {
        const platform = {
          isolation: 'bwrap',
          bwrap: '/no/such/bwrap',
          setpriv: null,
          users: null,
          network: null,
          hasProject: false,
        } as const;
        await expect(probeBubblewrap(harness.options, platform)).resolves.toMatch(/ENOENT/);
      });

      it('pauses and removes unknown ids before it is prepared', async () => {
        const unprepared = new ProcessSandboxBackend(harness.options);
        await expect(unprepared.pause('neverThere')).resolves.toBeUndefined();
        await expect(unprepared.remove('neverThere')).resolves.toBeUndefined();
        const { id } = harness.launch();
        await mkdir(at(id));
        await expect(unprepared.remove(id)).rejects.toThrow(SandboxBackendError);
      });
    });
  }
});
