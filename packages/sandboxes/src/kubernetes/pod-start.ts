import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonAt, jsonList, parseJson } from '@slipway/common/json-access.js';
import { ApiServerError, type ApiServer } from './api-server.js';
import { connectToPod } from './pod-socket.js';
import { AGENT_PORT } from '../container-layout.js';
import { type ProgramLaunch, SandboxBackendError } from '../sandbox-backend.js';
import { changeWithin, type ClusterObjects } from './cluster-objects.js';
import {
  type ObservedPod,
  type ClusterSandbox,
  hasPodEnded,
  type PodEvent,
  type PodReach,
  progressOf,
  readEvent,
  startProblem,
  type VolumeNews,
  volumeNews,
  wasKilled,
  wasRejected,
} from './sandbox-facts.js';
import { AGENT_CONTAINER, POD_ANNOTATION, volumeName } from './sandbox-manifest.js';
import { type WriteMoments, writeToStandardInput } from './standard-input.js';

/** The cluster is asked again after this time even if the watch reports no change. */
const LOOK_AGAIN_MS = 2_000;
const SAY_WHY_MS = 2_000;
/** What does not react is named after this time. */
const SAY_WHO_MS = 10_000;
const MIN_POLL_MS = 10;
/** After an outage of the API server its controllers may take this long to catch up. */
const RECOVERY_MS = 120_000;
/** What the scheduler says while controllers lag: of a node that could not report, of a volume claim not yet made. */
const CATCHING_UP = /untolerated taint|persistentvolumeclaim .* not found/;
const NO_VOLUME = /persistentvolumeclaim/i;
/** The node may have attached to an earlier pod of the same name. */
const WRITE_AGAIN_MS = 100;
const POLL_GROWTH = 1.5;
const ALIVE_TIMEOUT_MS = 2_000;
const MAX_ALIVE_BYTES = 64 * 1024;
/** The agent server reports its key well within this time. */
const KEY_AGAIN_MS = 2_000;
const NODE_COMES = new Set(['TriggeredScaleUp', 'Nominated']);
const MAX_EVENTS = 50;

interface PodStartTools {
  api: ApiServer;
  objects: ClusterObjects;
  reach: PodReach;
  nodeWaitMs: number;
}

type Aliveness =
  | 'silent'
  /** It waits for its session key. */
  | 'unassigned'
  | 'assigned';

type StartOutcome =
  | 'over'
  /** The program ended without its key and through no fault of its own, so another pod has to start. */
  | 'again';

export class PodStart {
  private readonly startedAt = performance.now();
  private unscheduledSince: number | null = null;
  private readonly said = new Set<string>();
  private lastSaid: string | null = null;
  /** The pod that the key was written to, and when. */
  private written: { uid: string; at: number } | null = null;
  private writeFailed = false;

  constructor(
    private readonly launch: ProgramLaunch,
    private readonly image: string,
    private readonly tools: PodStartTools,
    private readonly signal: AbortSignal,
  ) {}

  /** Until it runs with its key, or has ended. @throws SandboxBackendError; ApiServerError; the signal's reason */
  async follow(found: ClusterSandbox | null = null): Promise<StartOutcome> {
    try {
      for (let known = found; ; known = null) {
        const change = this.tools.objects.nextChange;
        const next = await this.look(known);
        if (typeof next === 'string') {
          return next;
        }
        // What has changed since `known` was read was not reported here, so it looks again at once.
        if (known === null) {
          await changeWithin(next.pauseMs, change, this.signal);
        }
      }
    } catch (error) {
      const { reason }: { reason: unknown } = this.signal;
      throw this.signal.aborted && reason instanceof SandboxBackendError && this.lastSaid !== null
        ? new SandboxBackendError(`${reason.message} Last: ${this.lastSaid}`, { cause: reason })
        : error;
    }
  }

  /** Waits while the API server does not answer: the signal has the deadline. */
  private async look(known: ClusterSandbox | null): Promise<StartOutcome | { pauseMs: number }> {
    try {
      const found = known ?? (await this.tools.objects.find(this.launch.id, { signal: this.signal }));
      if (found === null) {
        throw new SandboxBackendError('something else removed it while it started');
      }
      const pauseMs = await this.advance(found);
      if (pauseMs !== null) {
        return { pauseMs };
      }
      const { pod } = found;
      return pod !== null && hasPodEnded(pod) && (this.writeFailed || this.wasStopped(pod))
        ? 'again'
        : 'over';
    } catch (error) {
      if (!(error instanceof ApiServerError) || !error.isTemporary) {
        throw error;
      }
      this.say(`the Kubernetes API server does not answer (${error.message}); it is asked again`);
      return { pauseMs: LOOK_AGAIN_MS };
    }
  }

  /** Milliseconds until the next look, unless a change comes earlier; null when the start is over. */
  private async advance({ sandbox, pod }: ClusterSandbox): Promise<number | null> {
    if (pod === null || pod.isDeleting) {
      if (sandbox.problem !== null) {
        this.say(`the cluster cannot make its pod yet: ${sandbox.problem}`);
      } else if (performance.now() - this.startedAt >= SAY_WHO_MS) {
        this.say(
          pod === null
            ? 'the cluster has not made its pod yet: does the controller of agent-sandbox run?'
            : `its former pod has not ended yet: is the node ${pod.node} ready?`,
        );
      }
      return LOOK_AGAIN_MS;
    }
    if (hasPodEnded(pod)) {
      return null;
    }
    const problem = startProblem(pod);
    if (problem?.isPassing) {
      this.say(problem.text);
      return LOOK_AGAIN_MS;
    }
    if (problem !== null) {
      throw new SandboxBackendError(problem.text);
    }
    if (pod.container.state !== 'running' || pod.container.name !== AGENT_CONTAINER || pod.ip === null) {
      await this.sayWhy(pod);
      return LOOK_AGAIN_MS;
    }
    if (this.launch.sessionKey === null) {
      return null;
    }
    if (this.launch.program.kind !== 'native') {
      await this.mark(pod, sandbox.keyedPod);
      return null;
    }
    return await this.assign(pod, sandbox.keyedPod);
  }

  private async assign(pod: ObservedPod, keyedPod: string | null): Promise<number | null> {
    // A worker that died may have written the key before.
    const mayHaveKey = keyedPod === pod.uid;
    if (mayHaveKey && (await readAliveness(this.tools, pod, this.signal)) === 'assigned') {
      return null;
    }
    const isDue =
      this.writeFailed || this.written?.uid !== pod.uid || performance.now() - this.written.at > KEY_AGAIN_MS;
    if (isDue) {
      return await this.handOver(pod, keyedPod);
    }
    return await this.untilAssigned(pod);
  }

  /** The program may have its key before the cluster confirms the write. */
  private async handOver(pod: ObservedPod, keyedPod: string | null): Promise<number | null> {
    const permitted = this.mark(pod, keyedPod);
    const arrived = new AbortController();
    const answered = async (): Promise<number | null> => {
      await permitted;
      const pauseMs = await this.untilAssigned(pod);
      if (pauseMs === null) {
        arrived.abort();
      }
      return pauseMs;
    };
    const [pauseMs] = await Promise.all([
      answered(),
      this.write(pod, { permitted, arrived: arrived.signal }),
    ]);
    return pauseMs;
  }

  /** Polls faster than the watch reports, and briefly, because the program may end meanwhile. */
  private async untilAssigned(pod: ObservedPod): Promise<number | null> {
    const endsAt = performance.now() + KEY_AGAIN_MS;
    for (let pauseMs = MIN_POLL_MS; performance.now() < endsAt; pauseMs *= POLL_GROWTH) {
      const aliveness = await readAliveness(this.tools, pod, this.signal);
      if (aliveness === 'assigned') {
        return null;
      }
      if (aliveness === 'unassigned' && this.writeFailed) {
        return WRITE_AGAIN_MS;
      }
      await delay(pauseMs, undefined, { signal: this.signal });
      const known = this.tools.objects.knownPod(pod.name);
      if (known !== null && known.uid === pod.uid && hasPodEnded(known)) {
        return 0;
      }
    }
    return 0;
  }

  /** A busy kubelet may stop the program of a new pod for good. Ours ends in order then, without its key. */
  private wasStopped(pod: ObservedPod): boolean {
    const { exitCode } = pod.container;
    return wasKilled(pod) || wasRejected(pod) || (this.launch.program.kind === 'native' && exitCode === 0);
  }

  /** From now on the start does not accept another pod, even if this process dies. */
  private async mark({ uid }: ObservedPod, keyedPod: string | null): Promise<void> {
    if (keyedPod !== uid) {
      const body = { metadata: { annotations: { [POD_ANNOTATION]: uid } } };
      await this.tools.objects.patch(this.launch.id, body, { signal: this.signal });
    }
  }

  private async write({ name, uid }: ObservedPod, moments: WriteMoments): Promise<void> {
    const { api, objects } = this.tools;
    this.written = { uid, at: performance.now() };
    const line = JSON.stringify({ session_api_key: this.launch.sessionKey });
    try {
      await writeToStandardInput(api, objects.podsPath, name, line, moments, this.signal);
      this.writeFailed = false;
    } catch (error) {
      if (!(error instanceof ApiServerError)) {
        throw error;
      }
      if (!error.isTemporary && error.status !== 404) {
        throw error;
      }
      // Whether the write arrived shows soon: the program has its key, waits for it, or has ended.
      this.writeFailed = true;
    }
  }

  private async sayWhy(pod: ObservedPod): Promise<void> {
    const now = performance.now();
    if (pod.unscheduled !== null) {
      this.unscheduledSince ??= now;
      const volume = NO_VOLUME.test(pod.unscheduled) ? await this.volume(pod) : null;
      this.say(volume?.text ?? `its pod waits for a node: ${pod.unscheduled}`);
      const recoveredAt = CATCHING_UP.test(pod.unscheduled)
        ? this.tools.api.lastOutageAt + RECOVERY_MS
        : -Infinity;
      const hasWaited = now - Math.max(this.unscheduledSince, recoveredAt) >= this.tools.nodeWaitMs;
      if (hasWaited && !volume?.isComing && !(await this.isNodeComing(pod))) {
        const advice = volume?.text ?? adviceFor(pod.unscheduled);
        throw new SandboxBackendError(
          `no node of the cluster can run its pod: ${pod.unscheduled} (${advice}; SANDBOX_NODE_WAIT_SECONDS waits longer for one)`,
        );
      }
      return;
    }
    this.unscheduledSince = null;
    const waitedMs = now - this.startedAt;
    const line = waitedMs >= SAY_WHY_MS ? await this.progress(pod) : null;
    if (line !== null) {
      this.say(line);
    } else if (waitedMs >= SAY_WHO_MS && !pod.isSeen) {
      this.say(
        pod.node === null
          ? 'the scheduler of the cluster has not placed its pod yet'
          : `its node has not begun to start its pod yet: is the node ${pod.node} ready?`,
      );
    }
  }

  /** A line gives the start more time, so each is passed on once, whatever numbers and ids are in it. */
  private say(line: string): void {
    const kind = line.replaceAll(/\b[a-z_]*\d\w*/gi, '');
    if (!this.said.has(kind)) {
      this.launch.onProgress?.(line);
    }
    this.said.add(kind);
    this.lastSaid = line;
  }

  private async isNodeComing(pod: ObservedPod): Promise<boolean> {
    return (await this.eventsOf(pod)).some(({ reason }) => NODE_COMES.has(reason));
  }

  /** A pod gets its node after its volume where the volume is made for the first pod. */
  private async progress(pod: ObservedPod): Promise<string | null> {
    return pod.node === null
      ? ((await this.volume(pod))?.text ?? null)
      : progressOf(await this.eventsOf(pod), this.image);
  }

  private async volume({ name }: ObservedPod): Promise<VolumeNews | null> {
    const claim = `involvedObject.kind=PersistentVolumeClaim,involvedObject.name=${volumeName(name)}`;
    return volumeNews(await this.events(claim));
  }

  private async eventsOf({ uid }: ObservedPod): Promise<PodEvent[]> {
    return await this.events(`involvedObject.uid=${uid}`);
  }

  /** Empty where the service may not read events. */
  private async events(fieldSelector: string): Promise<PodEvent[]> {
    const { api, objects } = this.tools;
    const query = { fieldSelector, limit: MAX_EVENTS };
    try {
      const list = await api.call(objects.eventsPath, { query, signal: this.signal });
      return jsonList(list, 'items').map(readEvent);
    } catch (error) {
      if (error instanceof ApiServerError) {
        return [];
      }
      throw error;
    }
  }
}

function adviceFor(unscheduled: string): string {
  if (NO_VOLUME.test(unscheduled)) {
    return 'its volume is missing: is the storage class there, that of SANDBOX_STORAGE_CLASS or the default one';
  }
  return /untolerated taint|node affinity|unschedulable/.test(unscheduled) &&
    !unscheduled.includes('Insufficient')
    ? 'kubectl get nodes says whether they are ready; SANDBOX_POD_TEMPLATE has the tolerations and the nodeSelector of sandboxes'
    : 'smaller resources in the specification, or more nodes';
}

async function readAliveness(
  tools: PodStartTools,
  pod: ObservedPod,
  signal: AbortSignal,
): Promise<Aliveness> {
  try {
    const body = await getAlive(tools, pod, AbortSignal.any([signal, AbortSignal.timeout(ALIVE_TIMEOUT_MS)]));
    return jsonAt(parseJson(body), 'assigned') === false ? 'unassigned' : 'assigned';
  } catch {
    // It does not listen yet, or has ended.
    signal.throwIfAborted();
    return 'silent';
  }
}

/** @throws Error for anything but a short response with status 200 */
async function getAlive(
  { api, reach }: PodStartTools,
  pod: ObservedPod,
  signal: AbortSignal,
): Promise<string> {
  const { namespace, by } = reach;
  const socket =
    by === 'proxy' ? await connectToPod(api, { namespace, pod: pod.name, port: AGENT_PORT }) : null;
  const outgoing = httpRequest({
    host: pod.ip,
    port: AGENT_PORT,
    path: '/alive',
    headers: { host: 'localhost', connection: 'close' },
    agent: false,
    signal,
    ...(socket && { createConnection: () => socket }),
  }).end();
  outgoing.on('error', () => undefined);
  try {
    const [response]: IncomingMessage[] = await once(outgoing, 'response');
    let body = '';
    for await (const part of response?.setEncoding('utf8') ?? []) {
      body += String(part);
      if (body.length > MAX_ALIVE_BYTES) {
        throw new Error('the response is too long');
      }
    }
    if (response?.statusCode !== 200) {
      throw new Error(`status ${response?.statusCode}`);
    }
    return body;
  } finally {
    outgoing.destroy();
    socket?.destroy();
  }
}
