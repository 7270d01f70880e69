import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { KubernetesSandboxBackend } from '@slipway/sandboxes/kubernetes/kubernetes.backend.js';
import { sandboxObjectName } from '../../packages/sandboxes/src/kubernetes/sandbox-manifest.js';
import {
  SandboxBackendError,
  SandboxBackendUnavailableError,
  type SandboxLaunch,
} from '@slipway/sandboxes/sandbox-backend.js';
import { FakeKubernetes } from '../fakes/fake-kubernetes.js';
import { KUBERNETES_OPTIONS } from '../support/kubernetes-options.js';
import { sandboxLaunch } from '../support/sandbox-launch.js';
import { until } from '../support/until.js';
import { useCluster } from '../support/use-cluster.js';

const SANDBOXES = '/apis/agents.x-k8s.io/v1beta1/namespaces/agents/sandboxes';
const PODS = '/api/v1/namespaces/agents/pods';
const SIGNAL = new AbortController().signal;

const UNBOUND = 'pod has unbound immediate PersistentVolumeClaims';

const isCreate = (request: string) => request === `POST ${SANDBOXES}`;
const isAny = (request: string) => !request.includes('?watch');

describe('sandboxes on an API server with faults', () => {
  let cluster: FakeKubernetes;
  const test = useCluster();
  let port: number;
  let kubeconfig: string;
  let backend: KubernetesSandboxBackend;
  let changes: number;

  beforeEach(async () => {
    ({ cluster, port, kubeconfig } = test);
    backend = new KubernetesSandboxBackend({
      ...KUBERNETES_OPTIONS,
      kubeconfig,
      namespace: 'agents',
      reachedFrom: ['10.0.0.0/8'],
      callbackUrl: () => 'http://10.0.0.1:3000/api/v1/webhooks',
    });
    changes = 0;
    backend.onChange(() => {
      changes += 1;
    });
    await backend.prepare();
    await until(() => cluster.watching === 2);
  });

  afterEach(() => backend.disconnect());

  /** A stock agent server: its start needs no attach. */
  const launch = (): SandboxLaunch =>
    sandboxLaunch({ program: { kind: 'image', image: 'stock:1', args: [] }, workingDir: 'project' });

  /** A pod for which there is no node, or no volume. */
  const unscheduled = (message: string) => ({
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', message }],
  });
  const podOf = (id: string) => `${PODS}/${sandboxObjectName(id)}`;
  const setStatus = (id: string, status: object, isQuiet = false) =>
    cluster.put(podOf(id), { metadata: {}, ...cluster.objects.get(podOf(id)), status }, isQuiet);

  const listed = async () => (await backend.list()).map(({ id, state }) => `${id} ${state}`);
  const objectsOf = (prefix: string) => [...cluster.objects.keys()].filter((key) => key.startsWith(prefix));

  it.each([
    ['is busy', { kind: 'status', status: 429, headers: { 'retry-after': '0' } }],
    ['restarts', { kind: 'status', status: 503 }],
    ['breaks off', { kind: 'reset' }],
    ['creates it, and does not say so', { kind: 'lose-response' }],
  ] as const)('starts one sandbox while the server %s', async (_, fault) => {
    cluster.fail(isCreate, fault, 2);
    const one = launch();
    await backend.start(one, SIGNAL);
    expect(objectsOf(SANDBOXES)).toEqual([`${SANDBOXES}/${sandboxObjectName(one.id)}`]);
    expect(await backend.inspect(one.id)).toMatchObject({
      state: 'running',
      address: 'http://127.0.0.9:8000',
    });
    await until(async () => (await listed()).includes(`${one.id} running`));
  });

  it('pauses, resumes and removes while each request fails once', async () => {
    const one = launch();
    await backend.start(one, SIGNAL);
    for (const step of ['pause', 'resume', 'remove'] as const) {
      cluster.fail(isAny, { kind: 'status', status: 500 }, 3);
      await (step === 'resume' ? backend.resume(one, SIGNAL) : backend[step](one.id));
    }
    expect(cluster.objects.size).toBe(1);
    expect(objectsOf(SANDBOXES)).toEqual([]);
  });

  it('says that its credentials are not accepted', async () => {
    cluster.token = 'the-next';
    await expect(backend.start(launch(), SIGNAL)).rejects.toThrow(
      /does not accept the credentials of KUBECONFIG/,
    );
  });

  it('says at once which rights its account lacks', async () => {
    cluster.lacking
      .add('create pods/attach')
      .add('get pods/log')
      .add('watch sandboxes')
      .add('patch sandboxes');
    const warnings = (await backend.prepare()).filter(({ level }) => level === 'warn');
    expect(warnings.map(({ text }) => text)).toEqual([
      "the service's account lacks rights in the namespace agents: sandboxes (watch, patch), pods/log (get), pods/attach (create); compare with the Role of deploy/kubernetes or of the chart",
    ]);
  });

  it.each([
    [
      'User "x" cannot create resource "sandboxes" in API group "agents.x-k8s.io"',
      /account lacks a right \(User/,
    ],
    [
      'exceeded quota: sandboxes, requested: count/sandboxes.agents.x-k8s.io=1',
      /a quota .* is used up \(exceeded/,
    ],
    [
      'ValidatingAdmissionPolicy "owners" denied request: a label is missing',
      /a rule of the cluster refuses it/,
    ],
  ])('says what was refused, and tries no more: %s', async (message, expected) => {
    cluster.fail(isCreate, { kind: 'status', status: 403, reason: 'Forbidden', message });
    await expect(backend.start(launch(), SIGNAL)).rejects.toThrow(expected);
    expect(cluster.requests.filter(isCreate)).toHaveLength(1);
  });

  it('does not take a sandbox for gone where the cluster does not serve its kind', async () => {
    const one = launch();
    await backend.start(one, SIGNAL);
    const isSandbox = (request: string) => request.startsWith(`GET ${SANDBOXES}/`);
    cluster.fail(isSandbox, { kind: 'status', status: 404, message: '404 page not found' });
    await expect(backend.inspect(one.id)).rejects.toThrow(/cannot be inspected: 404 page not found/);
    expect(await backend.inspect(one.id)).toMatchObject({ state: 'running' });
  });

  it('leaves a Sandbox alone that belongs to another installation', async () => {
    const one = launch();
    const name = sandboxObjectName(one.id);
    const labels = { 'slipway.instance': 'other', 'slipway.sandbox-id': one.id };
    cluster.put(`${SANDBOXES}/${name}`, { metadata: { name, labels } });
    await expect(backend.start(one, SIGNAL)).rejects.toThrow('belongs to another installation');
    await backend.remove(one.id);
    expect(objectsOf(SANDBOXES)).toHaveLength(1);
  });

  it('knows nothing while the server is away, and everything once it is back', async () => {
    const one = launch();
    await backend.start(one, SIGNAL);
    await until(async () => (await listed()).length === 1);
    await cluster.close();
    await until(async () =>
      backend.list().then(
        () => false,
        () => true,
      ),
    );
    await expect(backend.list()).rejects.toThrow(SandboxBackendUnavailableError);
    await cluster.listen(port);
    await until(async () =>
      listed().then(
        (found) => found.includes(`${one.id} running`),
        () => false,
      ),
    );
  });

  it.each([
    ['half an event', '{"type":"MODIFIED","object":{"meta\n'],
    [
      'the end of its history',
      '{"type":"ERROR","object":{"code":410,"message":"too old","reason":"Expired"}}\n',
    ],
    ['nothing more', null],
  ])('lists again after a watch that sent %s', async (_, text) => {
    const one = launch();
    await backend.start(one, SIGNAL);
    await until(async () => (await listed()).length === 1);
    // What the watches miss, the list has.
    const status = {
      phase: 'Failed',
      containerStatuses: [{ name: 'agent', state: { terminated: { exitCode: 3 } } }],
    };
    setStatus(one.id, status, true);
    if (text === null) {
      cluster.breakWatches();
    } else {
      cluster.sendToWatches(text);
    }
    // The server is well: a list that is asked for meanwhile has an answer.
    await until(async () => (await listed()).includes(`${one.id} stopped`));
    expect(await listed()).toEqual([`${one.id} stopped`]);
  });

  it('tells of a program that ends without being asked', async () => {
    const one = launch();
    await backend.start(one, SIGNAL);
    await until(async () => (await listed()).length === 1);
    const before = changes;
    cluster.remove(podOf(one.id));
    await until(async () => (await listed()).includes(`${one.id} stopped`));
    await until(() => changes > before);
    const [fact] = await backend.list();
    expect(fact?.exit?.cause).toContain('removed by something else');
    expect(fact?.isReplaced).toBe(true);
    await backend.pause(one.id);
    expect(await backend.inspect(one.id)).not.toHaveProperty('isReplaced');
  });

  it.each([
    [
      'image',
      {
        containerStatuses: [
          { name: 'agent', image: 'stock:1', state: { waiting: { reason: 'ErrImagePull' } } },
        ],
      },
      /stock:1 cannot be pulled/,
    ],
    [
      'node',
      unscheduled('0/1 nodes are available'),
      /no node of the cluster can run its pod: 0\/1 nodes are available \(smaller resources/,
    ],
    [
      'node without a taint',
      unscheduled('0/3 nodes are available: 3 node(s) had untolerated taint(s).'),
      /SANDBOX_POD_TEMPLATE has the tolerations/,
    ],
    [
      'volume',
      unscheduled(UNBOUND),
      /unbound immediate PersistentVolumeClaims \(its volume is missing: is the storage class there/,
    ],
  ])('fails with the cause where there is no %s, and can be started again', async (_, status, cause) => {
    const { podStatus } = cluster;
    cluster.podStatus = { phase: 'Pending', ...status };
    const one = launch();
    const failure = await backend.start(one, SIGNAL).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SandboxBackendError);
    expect(String(failure)).toMatch(cause);
    await backend.pause(one.id);
    cluster.podStatus = podStatus;
    await backend.start(one, SIGNAL);
    expect(await backend.inspect(one.id)).toMatchObject({ state: 'running' });
  });

  /** An event of the volume of a sandbox. */
  const NOW = new Date().toISOString();
  const volumeEvent = (id: string, reason: string, message: string) =>
    cluster.put(`/api/v1/namespaces/agents/events/${reason}`, {
      metadata: { name: reason },
      involvedObject: { kind: 'PersistentVolumeClaim', name: `files-${sandboxObjectName(id)}` },
      lastTimestamp: NOW,
      reason,
      message,
    });
  const NO_VOLUME_YET = unscheduled(UNBOUND);

  it('waits for a volume that its provisioner makes, and says why it made none', async () => {
    const { podStatus } = cluster;
    cluster.podStatus = NO_VOLUME_YET;
    const one = launch();
    volumeEvent(one.id, 'ExternalProvisioning', 'Waiting for a volume to be created');
    const said: string[] = [];
    const starting = backend.start({ ...one, onProgress: (line) => said.push(line) }, SIGNAL);
    await until(() => cluster.requests.filter((request) => request.endsWith('/events')).length > 0);
    volumeEvent(one.id, 'Provisioning', 'External provisioner is provisioning volume');
    setStatus(one.id, NO_VOLUME_YET);
    await until(() => said.length === 2);
    setStatus(one.id, podStatus);
    await starting;
    const other = launch();
    cluster.podStatus = NO_VOLUME_YET;
    volumeEvent(other.id, 'ProvisioningFailed', 'volume limit (10) has been reached');
    await expect(backend.start(other, SIGNAL)).rejects.toThrow(
      /\(its volume is not there yet: volume limit \(10\) has been reached;/,
    );
    expect(said).toEqual([
      'its volume is not there yet: Waiting for a volume to be created',
      'its volume is not there yet: External provisioner is provisioning volume',
    ]);
  });

  it('waits for accounts, rights and a node where the API server has just been away', async () => {
    const { podStatus } = cluster;
    cluster.podStatus = unscheduled('1 node(s) had untolerated taint(s)');
    cluster.fail(isCreate, { kind: 'status', status: 503 });
    cluster.fail(isCreate, { kind: 'status', status: 401, reason: 'Unauthorized' }, 2);
    cluster.fail(isCreate, { kind: 'status', status: 403, reason: 'Forbidden' }, 2);
    const one = launch();
    const said: string[] = [];
    const starting = backend.start({ ...one, onProgress: (line) => said.push(line) }, SIGNAL);
    await until(() => said.some((line) => line.startsWith('its pod waits for a node')));
    await until(() => cluster.objects.has(podOf(one.id)));
    setStatus(one.id, podStatus);
    await starting;
    expect(await backend.inspect(one.id)).toMatchObject({ state: 'running' });
  });

  it('says a trouble that passes once, and goes on', async () => {
    const { podStatus } = cluster;
    const pull = (reason: string, port: number) => {
      const message = `read tcp 10.0.0.9:${port}: connection reset by peer`;
      const state = { waiting: { reason, message } };
      return { phase: 'Pending', containerStatuses: [{ name: 'agent', image: 'stock:1', state }] };
    };
    cluster.podStatus = pull('ErrImagePull', 40001);
    const one = launch();
    const said: string[] = [];
    const starting = backend.start({ ...one, onProgress: (line) => said.push(line) }, SIGNAL);
    await until(() => said.length > 0);
    const looks = () => cluster.requests.filter((request) => request.startsWith(`GET ${PODS}`)).length;
    const retries = ['ErrImagePull', 'ImagePullBackOff', 'ErrImagePull', 'ImagePullBackOff'];
    for (const [index, reason] of retries.entries()) {
      const status = pull(reason, 40002 + index);
      const before = looks();
      setStatus(one.id, status);
      await until(() => looks() > before);
    }
    setStatus(one.id, podStatus);
    await starting;
    expect(said).toEqual([
      expect.stringContaining('the image stock:1 cannot be pulled (ErrImagePull'),
      expect.stringContaining('the image stock:1 cannot be pulled (ImagePullBackOff'),
    ]);
  });

  const killed = (terminated: object) => ({
    phase: 'Failed',
    containerStatuses: [{ name: 'agent', state: { terminated } }],
  });

  const rejected = (reason: string) => ({ phase: 'Failed', reason, message: 'Pod was rejected: …' });

  it.each([
    ['killed', [killed({ exitCode: 137, reason: 'Error' }), killed({ exitCode: 143 })]],
    ['rejected', [rejected('OutOfpods'), rejected('NodeShutdown')]],
    ['rejected for another reason', [rejected('UnexpectedAdmissionError'), rejected('Evicted')]],
  ])('starts again what its node has %s while it started', async (_how, statuses) => {
    cluster.nextPodStatuses.push(...statuses);
    const one = launch();
    await backend.start(one, SIGNAL);
    expect(await backend.inspect(one.id)).toMatchObject({ state: 'running' });
    expect(cluster.nextPodStatuses).toEqual([]);
  });

  it.each([
    ['ends by itself', { exitCode: 7, reason: 'Error' }],
    ['has no memory left', { exitCode: 137, reason: 'OOMKilled' }],
  ])('starts a program once that %s', async (_, terminated) => {
    cluster.nextPodStatuses.push(killed(terminated));
    const one = launch();
    await backend.start(one, SIGNAL);
    expect(await backend.inspect(one.id)).toMatchObject({
      state: 'stopped',
      exit: { code: terminated.exitCode },
    });
  });

  it('starts no more than four pods that are killed', async () => {
    cluster.podStatus = killed({ exitCode: 137, reason: 'Error' });
    const one = launch();
    await backend.start(one, SIGNAL);
    expect((await backend.inspect(one.id)).exit).toMatchObject({ code: 137, outOfMemory: false });
    expect(cluster.requests.filter((request) => request.startsWith('PATCH'))).toHaveLength(9);
  });

  it('gives up a start when its signal says so, and says what it waited for', async () => {
    cluster.podStatus = { phase: 'Pending', conditions: [] };
    const control = new AbortController();
    const start = backend.start(launch(), control.signal);
    await until(() => objectsOf(PODS).length === 1);
    control.abort(new SandboxBackendError('The start took longer than 1 s.'));
    await expect(start).rejects.toThrow('The start took longer than 1 s.');
  });
});
