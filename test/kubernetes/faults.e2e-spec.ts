import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { jsonText } from '@slipway/common/json-access.js';
import type { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';
import { type ApiClient, type Started, text } from '../system/journeys/support/api-client.js';
import { message, shell } from '../system/journeys/support/script.js';
import { describeInCluster } from './support/in-cluster.js';
import { KubernetesWorld } from './support/kubernetes-world.js';

const SANDBOXES = '/api/v1/sandboxes';
/** A module that takes more memory than its sandbox has. */
const GREED = 'data:text/javascript,globalThis.eaten=Buffer.alloc(2**28,1)';
const SPECS = [
  { id: 'slipway' },
  { id: 'tiny', resources: { cpu: 1, memory_mb: 64 }, env: { NODE_OPTIONS: `--import=${GREED}` } },
  { id: 'absent', image: 'localhost/slipway-test-absent:1', agent_server: 'slipway' },
  { id: 'huge', resources: { cpu: 1024, memory_mb: 512 } },
];

describeInCluster('when the cluster fails', () => {
  let world: KubernetesWorld;
  let user: ApiClient;
  let specs: string;
  let service: ServiceProcess;

  beforeAll(async () => {
    world = await KubernetesWorld.open();
    specs = path.join(path.dirname(world.journey.dataDir), 'specs.json');
    await writeFile(specs, JSON.stringify(SPECS));
    service = await world.start({ SANDBOX_SPECS_FILE: specs });
    user = await world.journey.createUser();
  });

  afterEach(() => {
    world.access.proxy.heal();
  });

  afterAll(async () => {
    await world.close();
  });

  const created = async (spec: string): Promise<string> =>
    text(await user.post(`${SANDBOXES}?sandbox_spec_id=${spec}`), 'id');
  const failed = async (sandboxId: string): Promise<string> =>
    text(await user.sandboxIn(sandboxId, 'ERROR'), 'status_detail');
  const removed = async (sandboxId: string): Promise<void> => {
    await user.remove(`${SANDBOXES}/${sandboxId}`);
    await until(async () => (await user.sandbox(sandboxId)) === null);
  };
  const resumed = async (sandboxId: string): Promise<void> => {
    await user.post(`${SANDBOXES}/${sandboxId}/resume`);
    await user.sandboxIn(sandboxId, 'RUNNING');
  };
  const filesKept = async ({ sandboxId }: Started): Promise<boolean> =>
    (await user.run(sandboxId, 'cat mine')).output === 'kept\n';
  const withFile = async (): Promise<Started> => {
    const started = await user.started(message(shell('echo kept > mine')));
    await user.conversationIn(started.id, 'finished');
    return started;
  };

  it('keeps what runs while the API server is away, and finishes what was asked for when it is back', async () => {
    const started = await withFile();
    await world.access.proxy.goAway();
    const [waiting, kept] = [await created('slipway'), await created('slipway')];
    await user.say(started.id, shell('echo meanwhile'));
    // Through the API server it is not reached; by its own address it is.
    if (world.cluster.reachesPods) {
      await user.conversationIn(started.id, 'finished');
      expect(await filesKept(started)).toBe(true);
    }
    expect(jsonText(await user.sandbox(started.sandboxId), 'status')).toBe('RUNNING');
    expect(jsonText(await user.sandbox(waiting), 'status')).toBe('STARTING');
    const gone = user.remove(`${SANDBOXES}/${waiting}`);

    // An API server that has just started knows no rights yet.
    world.access.proxy.answer(403, 'Forbidden', { times: 12 });
    await world.access.proxy.comeBack();
    await gone;
    await until(async () => (await user.sandbox(waiting)) === null);
    await user.sandboxIn(kept, 'RUNNING');
    await until(async () => (await world.pods()).length === 2);
    expect(await world.cluster.sandboxes(world.namespace)).toHaveLength(2);
    await removed(kept);
    await removed(started.sandboxId);
  });

  it('starts a sandbox once, however often the API server refuses, cuts and forgets', async () => {
    const { proxy } = world.access;
    proxy.answer(429, 'TooManyRequests', { times: 3, headers: { 'retry-after': '1' } });
    proxy.answer(409, 'Conflict', { times: 2, match: ({ verb }) => verb === 'patch' });
    proxy.answer(500, 'InternalError', { times: 1, match: ({ verb }) => verb === 'create' });
    proxy.answer(410, 'Expired', { times: 2, match: ({ verb }) => verb === 'watch' });
    proxy.delay(150);
    const id = await created('slipway');
    await until(() => proxy.requests.some(({ accesses: [one] }) => one?.resource === 'pods/attach'));
    proxy.cut();
    await user.sandboxIn(id, 'RUNNING');

    expect(await world.cluster.sandboxes(world.namespace)).toHaveLength(1);
    expect(await world.pods(id)).toHaveLength(1);
    await removed(id);
  });

  it('notices the end of a pod after its watches were answered with 410', async () => {
    const { proxy } = world.access;
    const started = await withFile();
    proxy.answer(410, 'Expired', { times: 4, match: ({ verb }) => verb === 'watch' });
    proxy.cut();
    const [pod = ''] = await world.pods(started.sandboxId);
    await world.cluster.core.deleteNamespacedPod({
      name: pod,
      namespace: world.namespace,
      gracePeriodSeconds: 0,
    });

    expect(await failed(started.sandboxId)).toMatch(/pod was removed/);
    await resumed(started.sandboxId);
    expect(await filesKept(started)).toBe(true);
    await removed(started.sandboxId);
  });

  it('says that a pod was evicted, and resumes with the files', async () => {
    const started = await withFile();
    const [name = ''] = await world.pods(started.sandboxId);
    const { namespace } = world;
    await world.cluster.core.createNamespacedPodEviction({
      name,
      namespace,
      body: { metadata: { name, namespace } },
    });

    expect(await failed(started.sandboxId)).toMatch(/pod/);
    await resumed(started.sandboxId);
    expect(await filesKept(started)).toBe(true);
    await removed(started.sandboxId);
  });

  it.each([
    ['a container that runs out of memory', 'tiny', /memory/i],
    ['an image that nobody has', 'absent', /slipway-test-absent.*pull/i],
    ['a pod that fits on no node', 'huge', /cpu/i],
  ])('names the cause of %s', async (_what, spec, cause) => {
    const id = await created(spec);
    expect(await failed(id)).toMatch(cause);
    await removed(id);
    await until(async () => (await world.cluster.remains(world.namespace, id)).length === 0);
  });

  it('names the cause of a volume that nothing provides', async () => {
    // Replicas take starts from one queue: the one that has the class must not be there.
    await world.journey.stop(service);
    service = await world.start({ SANDBOX_SPECS_FILE: specs, SANDBOX_STORAGE_CLASS: 'slipway-test-absent' });
    const id = await created('slipway');
    expect(await failed(id)).toMatch(/volume|claim|storage/i);
    await removed(id);
    await until(async () => (await world.cluster.remains(world.namespace, id)).length === 0);
  });
});
