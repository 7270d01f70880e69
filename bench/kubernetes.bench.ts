import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import { say } from '../test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../test/fakes/scripted-llm.js';
import { firstOwnAddress } from '../test/support/own-address.js';
import { BenchNamespace, SANDBOX_API } from './support/bench-namespace.js';
import { freePort, withFolder } from './support/fixtures.js';
import { residentMemoryMb } from './support/process-usage.js';
import { median, type Outcome, print, spread } from './support/report.js';
import { lifeOutcomes, SANDBOXES, timed } from './support/sandbox-lives.js';
import {
  removeSandboxes,
  type SandboxService,
  SandboxStatuses,
  withSandboxService,
} from './support/sandbox-service.js';
import { readyAfter, storeModel, untilWarm } from './warm.bench.js';

const IMAGE = process.env['SLIPWAY_BENCH_KUBERNETES'] ?? 'slipway-agent-server:trial';
const VOLUME_SIZE = '64Mi';
const INSTANCE_ID = 'bench';
const ROUNDS = 7;
const MAX_MS = { start: 5_000, pause: 3_000, resume: 5_000 };
const MAX_WARM_MS = 600;
const AT_ONCE = 50;
/** A pod is promised a twentieth of its processors, and 50 of two each are more than a small node has. */
const SMALL = '- { id: slipway, start_timeout_seconds: 120, resources: { cpu: 0.5, memory_mb: 512 } }';
/** As `npm start` and the image have it. */
const NODE_ARGS = ['--max-semi-space-size=4'];
const OBJECTS = 1000;
const MAX_MEMORY_MB = 250;
const MAX_NOTICE_MS = 1000;
/** Lists and watches have settled. */
const SETTLED_MS = 20_000;
/** What replaces a claimed one has started, and the node rests. */
const SETTLED_WARM_MS = 2_000;

/**
 * Sandboxes that are pods, in the cluster of KUBECONFIG. This machine has to be a node of it. SLIPWAY_BENCH_KUBERNETES
 * names the image.
 */
export async function benchKubernetes(): Promise<Outcome[]> {
  const kubeconfig = process.env['KUBECONFIG'] ?? '';
  if (kubeconfig === '') {
    print('  not measured (KUBECONFIG names no cluster)');
    return [];
  }
  const namespace = await BenchNamespace.create();
  try {
    const address = await nodeAddress(namespace);
    const environment = {
      SANDBOX_BACKEND: 'kubernetes',
      KUBECONFIG: path.resolve(kubeconfig),
      SANDBOX_NAMESPACE: namespace.name,
      SANDBOX_IMAGE: IMAGE,
      SANDBOX_VOLUME_SIZE: VOLUME_SIZE,
      HOST: '0.0.0.0',
      INSTANCE_ID,
      MAX_RUNNING_SANDBOXES: String(AT_ONCE),
    };
    const listening = async () => {
      const port = String(await freePort());
      return { ...environment, PORT: port, SANDBOX_CALLBACK_URL: `http://${address}:${port}` };
    };
    const warm = await withSandboxService({ ...(await listening()), SANDBOX_WARM: '1' }, (service) =>
      warmOutcomes(service, address),
    );
    const lives = await withSandboxService(await listening(), async (service) => {
      const measured = await lifeOutcomes(service, 'kubernetes', MAX_MS, ROUNDS);
      return [...measured, await noticeOutcome(service, namespace)];
    });
    const atOnce = await withFolder(async (folder) => {
      const file = path.join(folder, 'specs.yaml');
      await writeFile(file, SMALL);
      const small = { ...(await listening()), SANDBOX_SPECS_FILE: file };
      return await withSandboxService(small, atOnceOutcome);
    });
    // The objects without rows stay.
    const patient = { ...(await listening()), SANDBOX_ORPHAN_GRACE_SECONDS: '86400' };
    const memory = await withSandboxService(
      patient,
      (service) => memoryOutcome(service, namespace),
      NODE_ARGS,
    );
    return [...warm, ...lives, atOnce, memory];
  } finally {
    await namespace.remove();
  }
}

/** From the request of a conversation to READY in a warm pod. */
async function warmOutcomes(service: SandboxService, address: string): Promise<Outcome[]> {
  const llm = await ScriptedLlm.start(() => say('It is done.'), { host: address });
  try {
    const [client] = service.clients;
    await storeModel(client, llm.url);
    const times: number[] = [];
    // The first round does not count.
    for (let round = 0; round <= ROUNDS; round += 1) {
      await untilWarm(service);
      await delay(SETTLED_WARM_MS);
      const ready = await readyAfter(service, client);
      print(`  warm round ${round}: READY after ${ready.toFixed(0)} ms`);
      if (round > 0) {
        times.push(ready);
      }
    }
    return [
      {
        what: 'kubernetes: conversation READY in a warm pod',
        target: `<= ${MAX_WARM_MS} ms`,
        measured: `${spread(times, 0)} ms`,
        reached: median(times) <= MAX_WARM_MS,
      },
    ];
  } finally {
    await llm.close();
  }
}

/** How long the row takes to say that a pod is gone. */
async function noticeOutcome(
  { clients: [client], database }: SandboxService,
  namespace: BenchNamespace,
): Promise<Outcome> {
  const statuses = await SandboxStatuses.watch(database);
  const times: number[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const id = await started(client);
    await statuses.until(id, 'RUNNING');
    const labelSelector = `slipway.sandbox-id=${id}`;
    const { items } = await namespace.core.listNamespacedPod({ namespace: namespace.name, labelSelector });
    const name = items[0]?.metadata?.name ?? '';
    const seen = statuses.until(id, 'ERROR');
    times.push(
      await timed(async () => {
        await namespace.core.deleteNamespacedPod({ name, namespace: namespace.name, gracePeriodSeconds: 0 });
        await seen;
      }),
    );
    await removeSandboxes(client, database);
  }
  print(`  a pod that is removed: noticed after ${spread(times, 0)} ms`);
  return {
    what: 'kubernetes: a pod is removed, until the row says so',
    target: `<= ${MAX_NOTICE_MS} ms`,
    measured: `${spread(times, 0)} ms`,
    reached: median(times) <= MAX_NOTICE_MS,
  };
}

async function atOnceOutcome({ clients: [client], database }: SandboxService): Promise<Outcome> {
  // One for each sandbox that is waited for.
  database.setMaxListeners(0);
  const statuses = await SandboxStatuses.watch(database);
  let running = 0;
  const ms = await timed(async () => {
    const ids = await Promise.all(Array.from({ length: AT_ONCE }, () => started(client)));
    const ends = await Promise.allSettled(ids.map((id) => statuses.until(id, 'RUNNING')));
    running = ends.filter(({ status }) => status === 'fulfilled').length;
  });
  print(`  ${running} of ${AT_ONCE} started at once are RUNNING after ${(ms / 1000).toFixed(1)} s`);
  await removeSandboxes(client, database);
  return {
    what: `kubernetes: sandboxes that are RUNNING of ${AT_ONCE} started at once`,
    target: `= ${AT_ONCE}`,
    measured: `${running}, after ${(ms / 1000).toFixed(1)} s`,
    reached: running === AT_ONCE,
  };
}

/** Suspended ones: what the service keeps of an object does not depend on its pod. */
async function memoryOutcome({ pid }: SandboxService, namespace: BenchNamespace): Promise<Outcome> {
  const before = residentMemoryMb(pid);
  for (let made = 0; made < OBJECTS; made += 1) {
    const id = `bench${String(made).padStart(17, '0')}`;
    const labels = { 'slipway.instance': INSTANCE_ID, 'slipway.sandbox-id': id };
    const name = `sbx-${Buffer.from(id).toString('hex')}`;
    await namespace.createSandbox(suspended(name, labels));
  }
  await delay(SETTLED_MS);
  const memory = residentMemoryMb(pid);
  print(`  resident memory ${memory.toFixed(0)} MB with ${OBJECTS} objects, before ${before.toFixed(0)} MB`);
  return {
    what: `kubernetes: memory of the service with ${OBJECTS} Sandboxes`,
    target: `<= ${MAX_MEMORY_MB} MB`,
    measured: `${memory.toFixed(0)} MB (before ${before.toFixed(0)} MB)`,
    reached: memory <= MAX_MEMORY_MB,
  };
}

function suspended(name: string, labels: Record<string, string>): object {
  const container = { name: 'agent', image: IMAGE, ports: [{ containerPort: 8000 }] };
  return {
    apiVersion: SANDBOX_API,
    kind: 'Sandbox',
    metadata: { name, labels },
    spec: {
      operatingMode: 'Suspended',
      podTemplate: { metadata: { labels }, spec: { containers: [container] } },
    },
  };
}

async function started(client: SandboxService['clients'][0]): Promise<string> {
  return jsonText(await client.json({ method: 'POST', path: SANDBOXES }), 'id') ?? '';
}

/** An address of this machine at which pods reach it. */
async function nodeAddress({ core }: BenchNamespace): Promise<string> {
  const { items } = await core.listNode();
  const addresses = items.flatMap(({ status }) => status?.addresses ?? []);
  const shared = await firstOwnAddress(
    addresses.filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
  );
  if (shared === null) {
    throw new Error('this machine is no node of the cluster, so it does not reach its pods');
  }
  return shared;
}
