import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { sandboxName } from './container.js';
import type { SandboxBackend, SandboxLaunch } from '../sandbox-backend.js';
import { startedSandbox } from '../sandbox-backend.harness.js';
import { startRequest } from '../../../agent-server/test/support/agent-server-client.js';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { until } from '../../../../test/support/until.js';
import { DockerHarness, describeWithEngine } from './docker.harness.js';

const SIGNAL = new AbortController().signal;
const MEBIBYTE = 1024 * 1024;

describeWithEngine('docker sandboxes (SLIPWAY_TEST_DOCKER_IMAGE): beside each other', () => {
  let harness: DockerHarness;
  let backend: SandboxBackend;

  beforeEach(async () => {
    harness = await DockerHarness.make('');
    ({ backend } = harness);
  });

  afterEach(async () => {
    await harness.close();
  });

  const started = (launch: SandboxLaunch, from: SandboxBackend = backend): Promise<SandboxClient> =>
    startedSandbox({ backend: from }, launch);

  it('cannot connect to each other, wherever they listen', async () => {
    const launches = [harness.launch(), harness.launch()] as const;
    const [one, two] = [await started(launches[0]), await started(launches[1])];
    const { NetworkSettings: settings } = await harness.docker
      .getContainer(sandboxName(launches[0].id))
      .inspect();
    const [address = ''] = Object.values(settings.Networks).map(({ IPAddress }) => IPAddress);
    const connect = `timeout 3 bash -c 'echo > /dev/tcp/${address}/8000' 2>/dev/null && echo open || echo closed`;
    expect((await one.run(connect)).stdout).toBe('open\n');
    expect((await two.run(connect)).stdout).toBe('closed\n');
  });

  it('share a network of their installation, which another object finds', async () => {
    await started(harness.launch());
    await started(harness.launch(), await harness.reopen());
    const label = [`slipway.instance=${harness.instanceId}`];
    const networks = await harness.docker.listNetworks({ filters: { label } });
    expect(networks.map(({ Name }) => Name)).toEqual([`slipway-${harness.instanceId}`]);
  });

  it('join no network that somebody else has made under that name', async () => {
    const network = await harness.docker.createNetwork({ Name: `slipway-${harness.instanceId}` });
    await expect(backend.start(harness.launch(), SIGNAL)).rejects.toThrow("is not the service's: remove it");
    await network.remove();
  });

  it('end when their files take more than is allowed, with a cause, and nobody else', async () => {
    const watched = harness.another({ sandboxBytes: 20 * MEBIBYTE });
    const [calm, greedy] = [harness.launch(), harness.launch()];
    const client = await started(calm, watched);
    await (await started(greedy, watched)).run('head -c 50M /dev/urandom > big');
    await until(async () => {
      await watched.sweep();
      return (await watched.inspect(greedy.id)).state === 'stopped';
    });
    expect((await watched.inspect(greedy.id)).exit).toMatchObject({
      cause: expect.stringMatching(/^It was stopped because its files take 5\d MB and 20 MB are allowed\./),
    });
    expect((await client.run('echo calm')).stdout).toBe('calm\n');
    await watched.resume(greedy, SIGNAL);
    const resumed = await sandboxAnswers(watched, greedy);
    expect((await resumed.run('rm big; ls -A')).stdout).toBe('');
    await watched.pause(greedy.id);
    expect((await watched.inspect(greedy.id)).exit).not.toHaveProperty('cause');
  });

  it('go on when a service that measured them has died', async () => {
    const launch = harness.launch();
    const client = await started(launch);
    await harness.docker.getContainer(sandboxName(launch.id)).pause();
    await harness.reopen();
    expect((await client.run('echo here')).stdout).toBe('here\n');
  });

  it('keep the workspace of an earlier version under both names', async () => {
    const launch = harness.launch({ workingDir: '/workspace/project' });
    const client = await started(launch);
    const id = randomUUID();
    const request = startRequest({ conversation_id: id, workspace: { working_dir: 'repo' } });
    await client.send('POST', '/api/conversations', request);
    // As it was: the workspace where it used to be, and that path in the record.
    const record = `/sandbox/conversations/${id.replaceAll('-', '')}/conversation.json`;
    const { exitCode } = await client.run(
      `cd /sandbox && echo kept > project/repo/file && rm workspace && mv project workspace && sed -i s,/workspace/project,/sandbox/workspace, ${record}`,
    );
    expect(exitCode).toBe(0);
    await backend.pause(launch.id);
    await backend.resume(launch, SIGNAL);
    const resumed = await sandboxAnswers(backend, launch);
    const info: unknown = await (await resumed.send('GET', `/api/conversations/${id}`)).json();
    expect(jsonText(jsonAt(info, 'workspace'), 'working_dir')).toBe('/workspace/project/repo');
    for (const folder of ['/workspace/project/repo', '/sandbox/workspace/repo']) {
      const { stdout } = await resumed.run(`pwd; cat file ${folder}/file`, folder);
      expect(stdout).toBe('/workspace/project/repo\nkept\nkept\n');
      expect(await resumed.download(`${folder}/file`)).toBe('kept\n');
    }
  });
});
