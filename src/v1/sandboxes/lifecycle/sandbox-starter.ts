import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Clock } from '@slipway/common/clock.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { traced } from '@slipway/common/spans.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { parseSandboxAddress } from '@slipway/sandboxes/sandbox-address.js';
import {
  SandboxBackend,
  SandboxBackendError,
  SandboxBackendUnavailableError,
  type SandboxFacts,
  type SandboxLaunch,
} from '@slipway/sandboxes/sandbox-backend.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import type { Sandbox } from '../sandbox.entity.js';
import { SandboxRepository } from '../sandbox.repository.js';
import { newSessionKey, sessionKeyBinding, sessionKeyHash } from '../session-key.js';
import { BackendReadiness } from './backend-readiness.js';
import { failedWhileStarting, FILES_GONE, startTimedOut } from './exit-diagnosis.js';
import { SandboxEgress } from './egress-access.js';
import { LaunchPlanner } from './launch-plan.js';

const CHECK_DEADLINE_MS = 100;

/** Limits a start: the signal aborts when the time is up, or when the worker's signal does. */
export class StartDeadline {
  readonly signal: AbortSignal;
  private readonly over = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private endsAt: number;

  constructor(
    private readonly clock: Clock,
    readonly seconds: number,
    worker: AbortSignal,
  ) {
    this.signal = AbortSignal.any([worker, this.over.signal]);
    this.endsAt = this.extend();
    this.timer = setInterval(() => this.check(), CHECK_DEADLINE_MS).unref();
  }

  /** Progress starts the time again. */
  extend(): number {
    this.endsAt = this.clock.now() + this.seconds * 1000;
    return this.endsAt;
  }

  get isOver(): boolean {
    return this.over.signal.aborted;
  }

  close(): void {
    clearInterval(this.timer);
  }

  private check(): void {
    if (this.clock.now() >= this.endsAt) {
      this.over.abort(new SandboxBackendError(`The start took longer than ${this.seconds} s.`));
    }
  }
}

/** A program that ends is noticed within this time. An inspection costs much more than a request to the program. */
const INSPECT_EVERY_MS = 100;
const MIN_POLL_MS = 10;
const MAX_POLL_MS = 250;
/** Polls back off to a tenth of the time spent, so polling makes a start at most that much slower. */
const POLL_SHARE = 0.1;
/** A listening program takes its key within a few milliseconds. */
const ASSIGNING_POLL_MS = 2;
const MAX_ASSIGNING_POLLS = 10;

interface AwaitedProgram {
  id: string;
  sessionKey: string | null;
}

@Injectable()
export class AgentServerProbe {
  constructor(
    private readonly backend: SandboxBackend,
    private readonly client: AgentServerClient,
  ) {}

  /**
   * Waits until the agent server answers and has its session key; if that is null, until it waits for one.
   * @throws SandboxBackendError with the cause when it ends or is late; the signal's reason
   */
  async waitUntilReady(
    program: AwaitedProgram,
    deadline: StartDeadline,
  ): Promise<{ address: string; ports: SandboxFacts['ports'] }> {
    const startedAt = performance.now();
    const wanted = program.sessionKey === null ? 'unassigned' : 'assigned';
    let facts: SandboxFacts | null = null;
    let inspectAgainAt = startedAt;
    let assigningPolls = 0;
    for (;;) {
      if (facts === null || facts.address === null || performance.now() >= inspectAgainAt) {
        facts = await this.inspectRunning(program, facts?.address ?? null);
        inspectAgainAt = performance.now() + INSPECT_EVERY_MS;
      }
      const { address, ports }: SandboxFacts = facts;
      const liveness = address === null ? null : await this.client.liveness(address);
      if (address !== null && liveness === wanted) {
        return { address, ports };
      }
      if (deadline.isOver) {
        const log = await this.backend.logTail(program.id);
        throw new SandboxBackendError(
          startTimedOut({ log, sessionKey: program.sessionKey }, address, deadline.seconds),
        );
      }
      if (liveness === 'unassigned' && assigningPolls < MAX_ASSIGNING_POLLS) {
        assigningPolls += 1;
        await this.wait(ASSIGNING_POLL_MS, deadline);
        continue;
      }
      const pauseMs = (performance.now() - startedAt) * POLL_SHARE;
      await this.wait(Math.min(Math.max(pauseMs, MIN_POLL_MS), MAX_POLL_MS), deadline);
    }
  }

  private async inspectRunning(
    { id, sessionKey }: AwaitedProgram,
    tried: string | null,
  ): Promise<SandboxFacts> {
    const facts = await this.backend.inspect(id);
    if (facts.state !== 'running') {
      const log = await this.backend.logTail(id);
      throw new SandboxBackendError(failedWhileStarting({ facts, log, sessionKey }, tried));
    }
    requireAddresses(facts);
    return facts;
  }

  private async wait(pauseMs: number, deadline: StartDeadline): Promise<void> {
    try {
      await delay(pauseMs, undefined, { signal: deadline.signal });
    } catch (error) {
      if (!deadline.isOver) {
        throw error;
      }
    }
  }
}

interface StartedSandbox {
  address: string;
  ports: SandboxFacts['ports'];
  /** Sentences about parts of the specification and settings without effect. */
  detail: string | null;
}

export interface StartProgress {
  detail: string | null;
  /** Epoch milliseconds; long work moves it. */
  deadlineAt: number;
}

export class StepInterrupted extends Error {}

/** Starts the program of a sandbox under a new session key, and waits until its agent server answers. */
@Injectable()
export class SandboxStarter {
  constructor(
    private readonly readiness: BackendReadiness,
    private readonly backend: SandboxBackend,
    private readonly probe: AgentServerProbe,
    private readonly planner: LaunchPlanner,
    private readonly clock: Clock,
    private readonly sandboxes: SandboxRepository,
    private readonly cipher: SecretCipher,
    private readonly egress: SandboxEgress,
  ) {}

  /** An abort leaves the rest to the row's next worker. @throws SandboxBackendError; StepInterrupted */
  async start(
    sandbox: Sandbox,
    signal: AbortSignal,
    onProgress: (progress: StartProgress) => void,
  ): Promise<StartedSandbox> {
    const { spec, launch, notes } = this.planner.plan(sandbox);
    const shortfalls: string[] = [];
    const deadline = new StartDeadline(this.clock, spec.startTimeoutSeconds, signal);
    try {
      await this.readiness.ready();
      await this.endOther(spec, sandbox);
      const watched: SandboxLaunch = {
        ...launch,
        egress: await this.egress.access(spec, sandbox),
        onProgress: (detail) => onProgress({ detail, deadlineAt: deadline.extend() }),
        onShortfall: (sentence) => shortfalls.push(sentence),
      };
      const begun = (): void => onProgress({ detail: null, deadlineAt: deadline.extend() });
      const sessionKey = await traced({ name: 'launch sandbox program' }, () =>
        this.launch(sandbox, watched, deadline.signal, begun),
      );
      deadline.extend();
      const current = { id: launch.id, sessionKey };
      const answering = await traced({ name: 'wait for agent server' }, () =>
        this.probe.waitUntilReady(current, deadline),
      );
      return { ...answering, detail: [...notes, ...shortfalls].join(' ') || null };
    } catch (error) {
      // A backend that was aborted may throw an error of its own; the cause is the deadline.
      signal.throwIfAborted();
      if (error instanceof SandboxBackendUnavailableError) {
        throw this.whileUnavailable(sandbox, error, onProgress);
      }
      throw deadline.isOver && !(error instanceof SandboxBackendError) ? deadline.signal.reason : error;
    } finally {
      deadline.close();
    }
  }

  /**
   * Ends what runs before a first start with another way out than it is to have: a replica with another configuration began it, or kept it
   * warm. Before the row says the new one, since the next attempt would take what runs for that.
   */
  private async endOther(spec: SandboxSpec, sandbox: Sandbox): Promise<void> {
    const { id, generation, egressMode } = sandbox;
    const isOther = generation === 0 && this.egress.mode(spec, sandbox) !== egressMode;
    if (isOther && (await this.backend.inspect(id)).state === 'running') {
      await this.renewKey(sandbox);
      await this.backend.pause(id);
    }
  }

  /** The start goes on when the backend can be asked again, unless that takes as long as a start may. */
  private whileUnavailable(
    { deadlineAt }: Sandbox,
    error: SandboxBackendUnavailableError,
    onProgress: (progress: StartProgress) => void,
  ): Error {
    if (deadlineAt === null || this.clock.now() >= deadlineAt.getTime()) {
      return new SandboxBackendError(error.message, { cause: error });
    }
    onProgress({ detail: error.message, deadlineAt: deadlineAt.getTime() });
    return error;
  }

  /** Calls `begun` once the backend has answered: until then the deadline of the row counts. */
  private async launch(
    sandbox: Sandbox,
    launch: SandboxLaunch,
    signal: AbortSignal,
    begun: () => void,
  ): Promise<string> {
    const { id, generation } = sandbox;
    const { state } = await this.backend.inspect(id);
    begun();
    if (state === 'missing' && generation > 0) {
      throw new SandboxBackendError(FILES_GONE);
    }
    if (generation === 0 && state !== 'stopped') {
      // Also what runs and answers: a worker that died may have left it without its network.
      await this.backend.start(launch, signal);
      return launch.sessionKey;
    }
    // First, because only a worker that still has the lease may end what runs.
    const sessionKey = await this.renewKey(sandbox);
    // After a resume that overtook its pause, the earlier program still runs, with the earlier key.
    await this.backend.pause(id);
    await this.backend.resume({ ...launch, sessionKey }, signal);
    return sessionKey;
  }

  /** The key of an earlier start becomes useless. The row has the new one before the program. */
  private async renewKey({ id, leaseOwner }: Sandbox): Promise<string> {
    const key = newSessionKey();
    const renewed = await this.sandboxes.update(
      id,
      {
        sessionKey: this.cipher.encrypt(key, sessionKeyBinding(id)),
        sessionKeyHash: sessionKeyHash(key),
      },
      { status: 'STARTING', leaseOwner: leaseOwner ?? '' },
    );
    if (!renewed) {
      throw new StepInterrupted('the sandbox has another status or another worker by now');
    }
    return key;
  }
}

/** @throws SandboxBackendError for a forbidden address: a program in the sandbox may have forged it */
export function requireAddresses({ address, ports }: SandboxFacts): void {
  const reported = [...(address === null ? [] : [address]), ...Object.values(ports)];
  if (reported.some((each) => parseSandboxAddress(each) === null)) {
    throw new SandboxBackendError(
      'The sandbox reported an invalid address. Start it again; if that does not help, remove it.',
    );
  }
}
