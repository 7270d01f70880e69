import { beforeEach, describe, expect, it } from '@jest/globals';
import { SandboxBackendError, type SandboxBackend, type SandboxLaunch } from './sandbox-backend.js';
import { quoteForShell } from '../../agent-server/src/tools/shell-environment.js';
import { type SandboxClient, sandboxAnswers } from '../../../test/support/sandbox-client.js';
import { sandboxFetch } from '../../../test/support/sandbox-fetch.js';
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from '../../../test/support/tls-certificate.js';
import { until } from '../../../test/support/until.js';
import { describeSandboxIsolation } from './sandbox-backend.isolation.contract.js';
import { describeProjectFolder } from './sandbox-backend.project.contract.js';
import {
  type SandboxBackendHarness,
  type SandboxPromises,
  shareBackend,
  shareSandbox,
  startedSandbox,
} from './sandbox-backend.harness.js';
import { describeWarmStarts } from './sandbox-backend.warm.contract.js';

const SIGNAL = new AbortController().signal;
/** Every process that inherits the descriptor holds the lock until it ends. */
const HOLD = 'exec 9> held; flock 9;';
const IS_HELD = 'flock --nonblock held true && echo free || echo held';
const FOREVER = 'while :; do sleep 0.01; done';
/** A web server at the port that the variable names. */
const serve = (text: string): string =>
  `node -e "require('http').createServer((_, answer) => answer.end('page of ${text}')).listen(process.env.APP_2, process.env.LISTEN_HOST)"`;

/** Calls a server whose certificate no public authority has signed. */
export const CALL_PRIVATE_SERVER = `
const run = require('node:util').promisify(require('node:child_process').execFile);
const certificate = ${JSON.stringify({ cert: TEST_CERTIFICATE, key: TEST_PRIVATE_KEY })};
const server = require('node:https').createServer(certificate, (_, answer) => answer.end('trusted'));
server.listen(0, 'localhost', async () => {
  const url = 'https://localhost:' + server.address().port;
  const ask = 'fetch(process.argv[1]).then((answer) => answer.text()).then(console.log)';
  const calls = [run('curl', ['-sS', url]), run('node', ['-e', ask, url])];
  const outcomes = await Promise.all(calls.map((call) => call.then(({ stdout }) => stdout.trim(), String)));
  console.log(outcomes.join(' '));
  process.exit();
});`;

/** The contract of every sandbox backend, whatever it runs sandboxes on. */
export function describeSandboxBackend(
  name: string,
  makeHarness: () => Promise<SandboxBackendHarness>,
  promised: SandboxPromises,
): void {
  describe(`sandbox backend: ${name}`, () => {
    describe('a sandbox that runs', () => {
      const shared = shareSandbox(makeHarness);

      it('refuses clients without the session key', async () => {
        const { address } = shared().client;
        expect((await sandboxFetch(address, '/api/bash/bash_events/search')).status).toBe(401);
      });

      // The fake one has no program of its own that could trust anybody.
      (promised.isolated ? it : it.skip)('has tools trust the authorities of the operator', async () => {
        const { stdout } = await shared().client.run(`node -e ${quoteForShell(CALL_PRIVATE_SERVER)}`);
        expect(stdout).toBe('trusted trusted\n');
      });

      describeProjectFolder(shared, promised);
      describeSandboxIsolation(shared, promised);
    });

    describeBackend(makeHarness);
    if (promised.keepsWarm ?? true) {
      describeWarmStarts(makeHarness);
    }
  });
}

/** What starts, pauses and removes sandboxes. */
function describeBackend(makeHarness: () => Promise<SandboxBackendHarness>): void {
  describe('from start to removal', () => {
    const shared = shareBackend(makeHarness);
    let harness: SandboxBackendHarness;
    let backend: SandboxBackend;

    beforeEach(() => {
      harness = shared();
      ({ backend } = harness);
    });

    const started = async (launch: SandboxLaunch = harness.launch()): Promise<SandboxClient> =>
      await startedSandbox(harness, launch);

    const states = async (from: SandboxBackend = backend) =>
      (await from.list()).map(({ id, state }) => `${id} ${state}`).toSorted();

    it('reports nothing under an unknown id', async () => {
      const { id } = harness.launch();
      expect(await backend.inspect(id)).toEqual({
        id,
        state: 'missing',
        address: null,
        ports: {},
        exit: null,
        createdAt: null,
      });
      expect(await backend.logTail(id)).toBe('');
      expect(await backend.list()).toEqual([]);
      await backend.pause(id);
      await backend.remove(id);
      await expect(backend.resume(harness.launch({ id }), SIGNAL)).rejects.toThrow(SandboxBackendError);
      expect(await states()).toEqual([]);
    });

    it('starts exactly one program for several calls, also at the same time, which answers at its address', async () => {
      const launch = harness.launch();
      await Promise.all([backend.start(launch, SIGNAL), backend.start(launch, SIGNAL)]);
      const client = await sandboxAnswers(backend, launch);
      expect((await client.run('echo "$((6 * 7))"; exit 3')).exitCode).toBe(3);
      await client.run('echo here > mine');
      await backend.start(launch, SIGNAL);
      await Promise.all([backend.start(launch, SIGNAL), backend.start(launch, SIGNAL)]);
      const { state, address, createdAt, exit } = await backend.inspect(launch.id);
      expect({ state, address, exit }).toEqual({ state: 'running', address: client.address, exit: null });
      expect(Math.abs(Date.now() - (createdAt ?? 0))).toBeLessThan(600_000);
      expect((await client.run('cat mine')).stdout).toBe('here\n');
      expect(await states()).toEqual([`${launch.id} running`]);
    });

    it('measures its disk, or reports that it cannot', async () => {
      const space = await backend.disk();
      if (space !== null) {
        expect(space.freeBytes).toBeGreaterThanOrEqual(0);
        expect(space.totalBytes).toBeGreaterThan(space.freeBytes);
        expect(Number.isFinite(space.totalBytes)).toBe(true);
      }
    });

    it('keeps two sandboxes apart', async () => {
      const [one, two] = await Promise.all([started(), started()]);
      expect(one.address).not.toBe(two.address);
      await one.run('echo one > name');
      expect((await two.run('cat name')).exitCode).not.toBe(0);
    });

    it('reports the exit of a program that ends while it starts', async () => {
      const launch = harness.brokenLaunch();
      await backend.start(launch, SIGNAL);
      await until(async () => (await backend.inspect(launch.id)).state === 'stopped');
      expect(await backend.inspect(launch.id)).toMatchObject({
        state: 'stopped',
        address: null,
        exit: { code: 7, signal: null, outOfMemory: false },
      });
      expect(await backend.logTail(launch.id)).toContain('it is broken');
      expect(await states()).toEqual([`${launch.id} stopped`]);
      await backend.remove(launch.id);
      expect(await states()).toEqual([]);
    });

    it('pauses and resumes with all files, several times, and by a start too', async () => {
      const launch = harness.launch();
      let client = await started(launch);
      for (const round of ['1', '2', '3']) {
        await client.run(`echo ${round} >> rounds`);
        const before = client;
        await backend.pause(launch.id);
        await backend.pause(launch.id);
        expect(await backend.inspect(launch.id)).toMatchObject({ state: 'stopped', address: null });
        expect(await before.isAlive()).toBe(false);
        await (round === '3' ? backend.start(launch, SIGNAL) : backend.resume(launch, SIGNAL));
        client = await sandboxAnswers(backend, launch);
      }
      expect((await client.run('cat rounds')).stdout).toBe('1\n2\n3\n');
    });

    it('leaves a sandbox alone that its caller may not stop, and resumes with the session key of that launch', async () => {
      const launch = harness.launch();
      const client = await started(launch);
      await expect(backend.pause(launch.id, () => false)).rejects.toThrow(SandboxBackendError);
      expect(await client.isAlive()).toBe(true);
      await backend.pause(launch.id, () => true);
      expect(await client.isAlive()).toBe(false);
      const changed = { ...launch, sessionKey: `${launch.sessionKey}-changed` };
      await backend.resume(changed, SIGNAL);
      const after = await sandboxAnswers(backend, changed);
      expect((await after.run('true')).exitCode).toBe(0);
      const response = await sandboxFetch(after.address, '/api/bash/bash_events/search', {
        headers: { 'X-Session-API-Key': launch.sessionKey },
      });
      expect(response.status).toBe(401);
    });

    it('ends everything that the sandbox started when it pauses', async () => {
      const launch = harness.launch();
      const client = await started(launch);
      // Our server ends what a finished command leaves behind; this one still runs when the pause comes.
      const running = client.run(`${HOLD} setsid bash -c '${FOREVER}' & ${FOREVER}`);
      // The pause may cut it off.
      running.catch(() => undefined);
      await until(async () => (await client.run(IS_HELD)).stdout === 'held\n');
      await backend.pause(launch.id);
      await backend.resume(launch, SIGNAL);
      const resumed = await sandboxAnswers(backend, launch);
      expect((await resumed.run(IS_HELD)).stdout).toBe('free\n');
    });

    it('gives each sandbox ports of its own for what tools start', async () => {
      const launches = ['one', 'two'].map(() => harness.launch({ ports: { WORKER_1: 8011, APP_2: 8012 } }));
      const pages = await Promise.all(
        launches.map(async (launch) => {
          const client = await started(launch);
          // It ends with the sandbox.
          client.run(serve(launch.id)).catch(() => undefined);
          const { ports } = await backend.inspect(launch.id);
          expect(Object.keys(ports).toSorted()).toEqual(['APP_2', 'WORKER_1']);
          expect(await backend.list()).toContainEqual(await backend.inspect(launch.id));
          const page = async () => (await sandboxFetch(ports['APP_2'] ?? '', '/')).text();
          await until(async () => page().then(Boolean, () => false));
          return await page();
        }),
      );
      expect(pages).toEqual(launches.map(({ id }) => `page of ${id}`));
      for (const { id } of launches) {
        await backend.pause(id);
        expect((await backend.inspect(id)).ports).toEqual({});
      }
    });

    it('removes a sandbox in every state, and twice, and starts empty under its id', async () => {
      const running = harness.launch();
      const client = await started(running);
      await client.run('echo old > file');
      const paused = harness.launch();
      await started(paused);
      await backend.pause(paused.id);
      const starting = harness.launch();
      await backend.start(starting, SIGNAL);
      for (const { id } of [running, paused, starting, running]) {
        await backend.remove(id);
        expect(await backend.inspect(id)).toMatchObject({ state: 'missing', address: null });
        expect(await backend.logTail(id)).toBe('');
      }
      expect(await client.isAlive()).toBe(false);
      expect(await states()).toEqual([]);
      expect((await (await started(running)).run('cat file')).exitCode).not.toBe(0);
    });

    it('finds its sandboxes after a restart of the service', async () => {
      const [running, paused] = [harness.launch(), harness.launch()];
      const client = await started(running);
      await client.run('echo kept > file');
      await started(paused);
      await backend.pause(paused.id);
      const before = await states();
      backend = await harness.reopen();
      expect(await states()).toEqual(before);
      expect(before).toEqual([`${paused.id} stopped`, `${running.id} running`].toSorted());
      await backend.start(running, SIGNAL);
      const adopted = await sandboxAnswers(backend, running);
      expect(adopted.address).toBe(client.address);
      expect((await adopted.run('cat file')).stdout).toBe('kept\n');
      await backend.pause(running.id);
      expect(await adopted.isAlive()).toBe(false);
      await backend.resume(running, SIGNAL);
      expect((await (await sandboxAnswers(backend, running)).run('cat file')).stdout).toBe('kept\n');
      await backend.remove(running.id);
      await backend.remove(paused.id);
      expect(await states()).toEqual([]);
    });

    it('starts nothing when the signal is already aborted', async () => {
      const launch = harness.launch();
      await expect(backend.start(launch, AbortSignal.abort(new Error('given up')))).rejects.toThrow(
        'given up',
      );
      await backend.remove(launch.id);
      expect(await states()).toEqual([]);
    });
  });
}
