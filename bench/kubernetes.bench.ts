import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { say } from '../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../packages/agent-server/test/fakes/scripted-llm.js';
import { firstOwnAddress } from '../test/support/own-address.js';
import { readyAfter, storeModel } from './support/conversation-starts.js';
import { freePort, withFolder } from './support/fixtures.js';
import { atMost, type Outcome, print, spread, timed } from './support/report.js';
import { lifeOutcomes, startedSandbox } from './support/sandbox-lives.js';
import {
  removeSandboxes,
  type SandboxService,
  untilStatus,
  withSandboxService,
} from './support/sandbox-service.js';
import { untilWarm } from './warm.bench.js';

const IMAGE = process.env['SLIPWAY_BENCH_KUBERNETES'] ?? 'slipway-agent-server:trial';
const VOLUME_SIZE = '64Mi';
const ROUNDS = 7;
const MAX_MS = { start: 5_000, pause: 3_000, resume: 5_000 };
const MAX_WARM_MS = 600;
const AT_ONCE = 50;
/** A pod is promised a twentieth of its processors, and 50 of two each are more than a small node has. */
const SMALL = '- { id: slipway, start_timeout_seconds: 120, resources: { cpu: 0.5, memory_mb: 512 } }';
const MAX_NOTICE_MS = 1000;
/** Asking for all of them all the time would slow them down. */
const POLL_MS = 100;
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
  const config = new KubeConfig();
  config.loadFromDefault();
  const core = config.makeApiClient(CoreV1Api);
  const namespace = `slipway-bench-${randomUUID().slice(0, 8)}`;
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  try {
    const address = await nodeAddress(core);
    const environment = {
      SANDBOX_BACKEND: 'kubernetes',
      KUBECONFIG: path.resolve(kubeconfig),
      SANDBOX_NAMESPACE: namespace,
      SANDBOX_IMAGE: IMAGE,
      SANDBOX_VOLUME_SIZE: VOLUME_SIZE,
      HOST: '0.0.0.0',
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
      return [...measured, await noticeOutcome(service, core, namespace)];
    });
    const atOnce = await withFolder(async (folder) => {
      const file = path.join(folder, 'specs.yaml');
      await writeFile(file, SMALL);
      const small = { ...(await listening()), SANDBOX_SPECS_FILE: file };
      return await withSandboxService(small, atOnceOutcome);
    });
    return [...warm, ...lives, atOnce];
  } finally {
    await core.deleteNamespace({ name: namespace });
  }
}

/** Measures from the request of a conversation to READY in a warm pod. */
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
    return [atMost('kubernetes: conversation READY in a warm pod', times, MAX_WARM_MS)];
  } finally {
    await llm.close();
  }
}

/** How long the row takes to say that a pod is gone. */
async function noticeOutcome(
  { clients: [client], database }: SandboxService,
  core: CoreV1Api,
  namespace: string,
): Promise<Outcome> {
  const times: number[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    const id = await startedSandbox(client);
    await untilStatus(database, id, 'RUNNING');
    const labelSelector = `slipway.sandbox-id=${id}`;
    const { items } = await core.listNamespacedPod({ namespace, labelSelector });
    const name = items[0]?.metadata?.name ?? '';
    times.push(
      await timed(async () => {
        await core.deleteNamespacedPod({ name, namespace, gracePeriodSeconds: 0 });
        await untilStatus(database, id, 'ERROR');
      }),
    );
    await removeSandboxes(client, database);
  }
  print(`  a pod that is removed: noticed after ${spread(times, 0)} ms`);
  return atMost('kubernetes: a pod is removed, until the row says so', times, MAX_NOTICE_MS);
}

async function atOnceOutcome({ clients: [client], database }: SandboxService): Promise<Outcome> {
  let running = 0;
  const ms = await timed(async () => {
    const ids = await Promise.all(Array.from({ length: AT_ONCE }, () => startedSandbox(client)));
    const ends = await Promise.allSettled(ids.map((id) => untilStatus(database, id, 'RUNNING', POLL_MS)));
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

/** An address of this machine at which pods reach it. */
async function nodeAddress(core: CoreV1Api): Promise<string> {
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
