import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { jsonAt } from '@slipway/common/json-access.js';
import { SandboxBackendError, type SandboxLaunch } from '../sandbox-backend.js';
import { startedSandbox, untilStopped } from '../sandbox-backend.harness.js';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { until } from '../../../../test/support/until.js';
import { AGENT_IMAGE, KubernetesHarness, describeInCluster } from './kubernetes.harness.js';

const SIGNAL = new AbortController().signal;
const MISSING_IMAGE = 'registry.invalid/nobody/has-this:1';
/** Of `deploy/kubernetes/overlays/trial`; like any image of others, it has variables and programs of its own, and no git. */
const IMAGE_OF_OTHERS = 'slipway-postgres:trial';
/** Takes memory until it is ended. */
const GREEDY = '--import=data:text/javascript,globalThis.k=[];for(;;)k.push(Buffer.alloc(16777216,1))';
/** Never comes to the point where it would listen to signals. */
const BUSY = '--import=data:text/javascript,for(;;)0';

describeInCluster('kubernetes sandboxes (npm run test:kubernetes): what goes wrong', () => {
  let harness: KubernetesHarness;

  beforeEach(async () => {
    harness = await KubernetesHarness.make();
  });

  afterEach(async () => {
    await harness.close();
  });

  const started = (launch: SandboxLaunch): Promise<SandboxClient> => startedSandbox(harness, launch);

  async function failureOf(launch: SandboxLaunch): Promise<string> {
    const failure: unknown = await harness.backend.start(launch, SIGNAL).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SandboxBackendError);
    return String(failure);
  }

  it('names an image that nobody has, and starts with another one afterwards', async () => {
    const launch = harness.launch();
    expect(
      await failureOf({
        ...launch,
        program: { kind: 'image', image: MISSING_IMAGE, args: [] },
        workingDir: 'project',
      }),
    ).toContain(`the image ${MISSING_IMAGE} cannot be pulled`);
    await harness.backend.pause(launch.id);
    expect((await (await started(launch)).run('echo here')).stdout).toBe('here\n');
  });

  it("has the scheduler's text where no node has room", async () => {
    const lines: string[] = [];
    const launch = harness.launch({ memoryMb: 16 * 1024 * 1024, onProgress: (line) => lines.push(line) });
    expect(await failureOf(launch)).toContain('no node of the cluster can run its pod: 0/');
    expect(lines[0]).toMatch(/^its pod waits for a node: .*[Ii]nsufficient memory/);
    await harness.backend.remove(launch.id);
    expect((await harness.backend.inspect(launch.id)).state).toBe('missing');
  });

  it('reports memory that was used up', async () => {
    const launch = harness.imageLaunch(AGENT_IMAGE, { env: { NODE_OPTIONS: GREEDY }, memoryMb: 128 });
    await harness.backend.start(launch, SIGNAL);
    await untilStopped(harness.backend, launch.id);
    expect((await harness.backend.inspect(launch.id)).exit).toMatchObject({ code: 137, outOfMemory: true });
  });

  it('takes a pod that somebody has deleted for an exit, and starts again with all files', async () => {
    const launch = harness.launch();
    const client = await started(launch);
    await client.run('echo kept > file');
    let changes = 0;
    harness.backend.onChange(() => {
      changes += 1;
    });
    await harness.api.call(harness.podPath(launch.id), { method: 'DELETE' });
    await untilStopped(harness.backend, launch.id);
    expect((await harness.backend.inspect(launch.id)).exit?.cause).toContain('removed by something else');
    expect(changes).toBeGreaterThan(0);
    // Also when the controller has made another one, which has no key.
    await until(
      async () => jsonAt(await harness.api.find(harness.podPath(launch.id)), 'status', 'phase') === 'Running',
    );
    expect((await harness.backend.inspect(launch.id)).state).toBe('stopped');
    await harness.backend.pause(launch.id);
    await harness.backend.resume(launch, SIGNAL);
    expect((await (await sandboxAnswers(harness.backend, launch)).run('cat file')).stdout).toBe('kept\n');
  });

  it('goes on where a service died between the creation and the key', async () => {
    const launch = harness.launch();
    const control = new AbortController();
    const start = harness.another().start(launch, control.signal);
    start.catch(() => undefined);
    await until(async () => (await harness.backend.inspect(launch.id)).state === 'running');
    control.abort(new Error('the service died'));
    await expect(start).rejects.toThrow('the service died');
    expect((await (await started(launch)).run('echo here')).stdout).toBe('here\n');
  });

  it('ends a program at once that is told to stop while it loads', async () => {
    // Far more than this test may take.
    const patient = harness.another({ graceSeconds: 3600 });
    await patient.prepare();
    const launch = harness.launch({ env: { NODE_OPTIONS: BUSY } });
    const stopped = new AbortController();
    const start = patient.start(launch, stopped.signal);
    await until(async () => (await patient.inspect(launch.id)).state === 'running');
    stopped.abort(new Error('nobody waits'));
    await expect(start).rejects.toThrow('nobody waits');
    await patient.pause(launch.id);
    expect((await patient.inspect(launch.id)).state).toBe('stopped');
  });

  it('takes in the processes that tools leave behind', async () => {
    const client = await started(harness.launch());
    await client.run('for i in 1 2 3; do (sleep 0 & exec true); done');
    const zombies = 'grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null | wc -l';
    let left = '';
    await until(async () => {
      left = (await client.run(zombies)).stdout;
      return left === '0\n';
    });
    expect(left).toBe('0\n');
  });

  it('runs a stock agent server, which has its key in a variable', async () => {
    // Ours speaks its protocol.
    const program = { kind: 'image', image: AGENT_IMAGE, args: ['--no-secrets-stdin'] } as const;
    const launch = harness.launch({
      program: { ...program, args: [...program.args] },
      workingDir: 'project',
    });
    const client = await started(launch);
    expect((await client.run('pwd; echo kept > file')).stdout).toBe('/workspace/project\n');
    await harness.backend.pause(launch.id);
    await harness.backend.resume(launch, SIGNAL);
    const resumed = await sandboxAnswers(harness.backend, launch);
    expect((await resumed.run('cat file')).stdout).toBe('kept\n');
  });

  it('keeps from tools what the service and the cluster have set, as elsewhere', async () => {
    const launch = harness.launch({ env: { OPERATORS_OWN: 'not for tools' } });
    const { stdout } = await (await started(launch)).run('env');
    expect(stdout).toContain('HOME=/sandbox/home');
    expect(stdout).not.toMatch(/^(OPERATORS_OWN|KUBERNETES_|HOSTNAME|SLIPWAY_SERVICE)/m);
  });

  it('gives tools the variables of an image that others have built, and its programs', async () => {
    const launch = harness.launch({ program: { kind: 'native', image: IMAGE_OF_OTHERS } });
    const { stdout } = await (await started(launch)).run('echo "$PGDATA"; initdb --version');
    expect(stdout).toMatch(/^\/var\/lib\/postgresql\/\S+\ninitdb \(PostgreSQL\)/);
  });

  it('runs our agent server in an image that has none of ours as its own', async () => {
    // The same image under the name of its digest is another one to the backend: it copies ours into it.
    const image = AGENT_IMAGE.includes(':') ? `docker.io/library/${AGENT_IMAGE}` : AGENT_IMAGE;
    const launch = harness.launch({ program: { kind: 'native', image } });
    const client = await started(launch);
    const { stdout } = await client.run(
      'id -u; pwd; cat /opt/slipway/bin/node >/dev/null 2>&1 || echo unreadable',
    );
    expect(stdout).toBe('10001\n/workspace/project\nunreadable\n');
  });

  it('runs as the user that a cluster gives, as OpenShift does, and copies ours as that user', async () => {
    const image = AGENT_IMAGE.includes(':') ? `docker.io/library/${AGENT_IMAGE}` : AGENT_IMAGE;
    const given = { runAsUser: 1_000_660_000, runAsGroup: 0, fsGroup: 1_000_660_000 };
    const backend = harness.another({ podTemplate: { spec: { securityContext: given } } });
    await backend.prepare();
    const launch = harness.launch({ program: { kind: 'native', image } });
    await backend.start(launch, SIGNAL);
    const client = await sandboxAnswers(backend, launch);
    const { stdout } = await client.run(
      'id -u; id -g; touch file "$HOME/file" && cat /opt/slipway/bin/node /proc/*/environ 2>&1 >/dev/null | grep -c denied',
    );
    expect(stdout).toMatch(/^1000660000\n0\n[2-9]\n$/);
  });
});
