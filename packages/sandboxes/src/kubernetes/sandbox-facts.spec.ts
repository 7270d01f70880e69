import { describe, expect, it } from '@jest/globals';
import {
  readPod,
  readSandbox,
  addressOf,
  type ClusterSandbox,
  hasPodEnded,
  isReplaced,
  sandboxFacts,
  startProblem,
} from './sandbox-facts.js';

// The statuses are those of a real cluster: Kubernetes 1.36.3, agent-sandbox 0.5.6.

const REACH = { by: 'pod', namespace: 'agents' } as const;
const STARTED = Date.parse('2026-11-22T21:15:30Z');

const SANDBOX = {
  metadata: {
    name: 'sbx-61',
    uid: 'sandbox-uid',
    generation: 3,
    creationTimestamp: '2026-11-22T21:15:30Z',
    labels: { 'slipway.instance': 'test', 'slipway.sandbox-id': 'a' },
    annotations: { 'slipway.pod': 'pod-uid' },
  },
  spec: { operatingMode: 'Running' },
  status: {
    conditions: [
      { type: 'Suspended', status: 'False', reason: 'NotSuspended', observedGeneration: 3 },
      { type: 'Ready', status: 'True', reason: 'DependenciesReady', observedGeneration: 3 },
    ],
  },
};

const POD = {
  metadata: {
    name: 'sbx-61',
    uid: 'pod-uid',
    annotations: { 'slipway.ports': '{"WORKER_1":8011}' },
    ownerReferences: [{ kind: 'Sandbox', name: 'sbx-61', uid: 'sandbox-uid', controller: true }],
  },
};

const RUNNING = container({ running: { startedAt: '2026-11-22T21:15:31Z' } });

function container(state: object) {
  return { phase: 'Running', podIP: '10.231.0.37', containerStatuses: [{ name: 'agent', state }] };
}

function terminated(details: object) {
  return { ...container({ terminated: details }), phase: 'Failed' };
}

function found(status: object | null, changes: object = {}): ClusterSandbox {
  const sandbox = readSandbox({ ...SANDBOX, ...changes });
  if (sandbox === null) {
    throw new Error('the sample is no Sandbox of ours');
  }
  return { sandbox, pod: status && readPod({ ...POD, status }) };
}

describe('sandboxFacts', () => {
  it('has the addresses of a program that runs', () => {
    expect(sandboxFacts(found(RUNNING), REACH)).toEqual({
      id: 'a',
      state: 'running',
      address: 'http://10.231.0.37:8000',
      ports: { WORKER_1: 'http://10.231.0.37:8011' },
      exit: null,
      createdAt: STARTED,
    });
  });

  it.each([
    ['an exit', { exitCode: 3, reason: 'Error' }, { code: 3 }],
    ['too much memory', { exitCode: 137, reason: 'OOMKilled' }, { code: 137, outOfMemory: true }],
    ['a tool killed for its memory', { exitCode: 0, reason: 'OOMKilled' }, { code: 0 }],
    ['a signal', { signal: 9 }, { code: null, signal: 'SIGKILL' }],
  ])('reports %s', (_, details, exit) => {
    expect(sandboxFacts(found(terminated(details)), REACH)).toMatchObject({
      state: 'stopped',
      address: null,
      ports: {},
      exit: { signal: null, outOfMemory: false, ...exit },
    });
  });

  it('says why the cluster ended a pod', () => {
    const status = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' };
    const { state, exit } = sandboxFacts(found(status), REACH);
    expect(state).toBe('stopped');
    expect(exit?.cause).toContain('Evicted: The node was low on resource: memory.');
  });

  it('says why the cluster removed a pod', () => {
    const message = 'default-scheduler: preempting to accommodate a higher priority pod';
    const conditions = [
      { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler', message },
    ];
    const metadata = { ...POD.metadata, deletionTimestamp: '2026-11-22T21:32:59Z' };
    const pod = readPod({ ...POD, metadata, status: { ...terminated({ exitCode: 0 }), conditions } });
    expect(sandboxFacts({ ...found(null), pod }, REACH).exit?.cause).toMatch(
      /^The cluster ended its pod \(PreemptionByScheduler: default-scheduler: preempting .* its files are kept\.$/,
    );
  });

  it.each([
    ['a busy node has not ended yet', 30, 'running'],
    ['a lost node does not end', 61, 'stopped'],
  ])('knows a pod that %s', (_, seconds, state) => {
    const metadata = { ...POD.metadata, deletionTimestamp: '2026-11-22T21:20:00Z' };
    const pod = readPod({ ...POD, metadata, status: RUNNING });
    const now = Date.parse('2026-11-22T21:20:00Z') + seconds * 1000;
    const facts = sandboxFacts({ ...found(null), pod }, REACH, now);
    expect(facts.state).toBe(state);
    expect(facts.exit?.cause ?? '').toMatch(state === 'stopped' ? /node that was lost/ : /^$/);
  });

  it.each([
    ['is gone', null],
    ['was made anew', 'another-uid'],
  ])('is stopped when the pod that has the key %s', (_, uid) => {
    const one = found(RUNNING);
    const other = { ...one, pod: uid === null || one.pod === null ? null : { ...one.pod, uid } };
    expect(isReplaced(other)).toBe(true);
    expect(sandboxFacts(other, REACH)).toMatchObject({ state: 'stopped', address: null, isReplaced: true });
    expect(sandboxFacts(other, REACH).exit?.cause).toContain('removed by something else');
  });

  it('says that a pod which ends was deleted, unless the sandbox is suspended', () => {
    const ended = readPod({
      ...POD,
      metadata: { ...POD.metadata, deletionTimestamp: '2026-11-22T21:20:00Z' },
      status: terminated({ exitCode: 0, reason: 'Completed' }),
    });
    const { sandbox } = found(null);
    const { state, exit } = sandboxFacts({ sandbox, pod: ended }, REACH);
    expect([state, exit?.cause]).toEqual([
      'stopped',
      expect.stringContaining('pod was removed by something else'),
    ]);
    const suspended = { ...sandbox, mode: 'Suspended' as const };
    expect(sandboxFacts({ sandbox: suspended, pod: ended }, REACH).exit).toMatchObject({ code: 0 });
  });

  it.each([
    ['is about to have its pod', 'running', { metadata: { ...SANDBOX.metadata, annotations: {} } }],
    ['is suspended', 'stopped', { spec: { operatingMode: 'Suspended' } }],
  ])('knows a sandbox that %s', (_, state, changes) => {
    expect(sandboxFacts(found(null, changes), REACH)).toMatchObject({ state, address: null, exit: null });
  });
});

describe('readSandbox', () => {
  const suspendedAt = (observedGeneration: number) => ({
    spec: { operatingMode: 'Suspended' },
    status: {
      conditions: [{ type: 'Suspended', status: 'True', reason: 'PodTerminated', observedGeneration }],
    },
  });

  it('believes that it is suspended once the controller has seen the last change', () => {
    expect(found(null, suspendedAt(3)).sandbox.isSuspended).toBe(true);
    expect(found(null, suspendedAt(2)).sandbox.isSuspended).toBe(false);
  });

  it.each([{}, null, 'text', { metadata: { name: 'x', uid: 'y' } }])('none: %j', (object) => {
    expect(readSandbox(object)).toBeNull();
  });
});

describe('a start', () => {
  const waiting = (reason: string, message?: string) =>
    readPod({
      ...POD,
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'agent', image: 'agent:1', state: { waiting: { reason, message } } }],
      },
    });

  it.each([
    [
      'ErrImagePull',
      'failed to resolve reference',
      'the image agent:1 cannot be pulled (ErrImagePull: failed to resolve reference)',
    ],
    ['ErrImageNeverPull', undefined, 'the image agent:1 cannot be pulled (ErrImageNeverPull)'],
    [
      'CreateContainerConfigError',
      'secret "x" not found',
      'the container cannot be started (CreateContainerConfigError: secret "x" not found)',
    ],
  ])('fails at once: %s', (reason, message, expected) => {
    const pod = waiting(reason, message);
    expect(pod && startProblem(pod)).toMatchObject({
      text: expect.stringContaining(expected),
      isPassing: false,
    });
  });

  it.each([
    ['ErrImagePull', 'pull QPS exceeded'],
    [
      'ErrImagePull',
      'failed to pull and unpack image "registry.example.com/agent:1": unexpected status from HEAD request to https://registry.example.com/v2/agent/manifests/1: 503 Service Unavailable',
    ],
    ['ErrImagePull', 'rpc error: code = DeadlineExceeded desc = context deadline exceeded'],
    [
      'ImagePullBackOff',
      'Back-off pulling image "agent:1": ErrImagePull: dial tcp 10.0.0.9:443: i/o timeout',
    ],
    [
      'ImagePullBackOff',
      'Back-off pulling image "agent:1": ErrImagePull: 429 Too Many Requests - toomanyrequests: You have reached your unauthenticated pull rate limit',
    ],
    ['CreateContainerError', 'context deadline exceeded'],
    [
      'CreateContainerError',
      'failed to reserve container name "agent_sbx-61": name "agent_sbx-61" is reserved for "4bd0"',
    ],
  ])('waits for what the node tries again: %s, %s', (reason, message) => {
    const pod = waiting(reason, message);
    expect(pod && startProblem(pod)).toMatchObject({
      text: expect.stringContaining(message),
      isPassing: true,
    });
  });

  it('waits while its container is created', () => {
    const pod = waiting('ContainerCreating');
    expect(pod && startProblem(pod)).toBeNull();
    expect(pod && hasPodEnded(pod)).toBe(false);
  });

  it('knows the text of the scheduler', () => {
    const message = '0/1 nodes are available: 1 Insufficient memory.';
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }];
    expect(readPod({ ...POD, status: { phase: 'Pending', conditions } })?.unscheduled).toBe(message);
  });

  it('waits for the container that copies our agent server', () => {
    const status = (state: object) => ({
      ...RUNNING,
      initContainerStatuses: [{ name: 'agent-server', state }],
    });
    expect(readPod({ ...POD, status: status({ running: {} }) })?.container.name).toBe('agent-server');
    expect(readPod({ ...POD, status: status({ terminated: { exitCode: 1 } }) })?.container).toMatchObject({
      name: 'agent-server',
      state: 'terminated',
      exitCode: 1,
    });
    expect(readPod({ ...POD, status: status({ terminated: { exitCode: 0 } }) })?.container.name).toBe(
      'agent',
    );
  });

  it.each([
    ['runs beside ours', { running: {} }, { running: {} }, 'agent'],
    [
      'runs, and the image of ours is missing',
      { running: {} },
      { waiting: { reason: 'ErrImagePull' } },
      'agent',
    ],
    ['is started again', { waiting: { reason: 'CrashLoopBackOff' } }, { running: {} }, 'agent'],
    ['has ended before ours', { terminated: { exitCode: 1 } }, { running: {} }, 'agent'],
    [
      'has no image',
      { waiting: { reason: 'ErrImagePull' } },
      { waiting: { reason: 'PodInitializing' } },
      'mesh-proxy',
    ],
  ])('looks at our container where a sidecar of the cluster %s', (_, sidecar, agent, expected) => {
    const pod = readPod({
      ...POD,
      spec: { initContainers: [{ name: 'mesh-proxy', restartPolicy: 'Always' }, { name: 'agent-server' }] },
      status: {
        ...container(agent),
        initContainerStatuses: [
          { name: 'mesh-proxy', state: sidecar },
          ...(expected === 'agent' ? [{ name: 'agent-server', state: { terminated: { exitCode: 0 } } }] : []),
        ],
      },
    });
    expect(pod?.container.name).toBe(expected);
  });
});

it.each([
  ['pod', '10.0.0.9', 'http://10.0.0.9:8000'],
  ['pod', 'fd00::9', 'http://[fd00::9]:8000'],
  ['proxy', '10.0.0.9', 'kube:agents/sbx-61:8000'],
  ['proxy', null, null],
] as const)('reaches pods by %s at %s: %s', (by, ip, address) => {
  const { pod } = found(RUNNING);
  expect(pod && addressOf({ ...pod, ip }, 8000, { by, namespace: 'agents' })).toBe(address);
});
