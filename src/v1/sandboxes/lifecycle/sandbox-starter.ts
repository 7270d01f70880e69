import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import {
  SandboxBackend,
  SandboxBackendError,
  type SandboxFacts,
  type SandboxLaunch,
} from '../backends/sandbox-backend.js';
import type { Sandbox } from '../sandbox.entity.js';
import { BackendReadiness } from './backend-readiness.js';
import { failedWhileStarting, FILES_GONE, neverAnswered } from './failure-messages.js';
import { LaunchPlanner } from './launch-plan.js';

const LOOK_EVERY_MS = 100;

/** Limits a start: its signal aborts when the time is over, or when the worker has to stop. */
class StartDeadline {
  readonly signal: AbortSignal;
  private readonly over = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private endsAt: number;

  constructor(
    private readonly clock: Clock,
    private readonly seconds: number,
    worker: AbortSignal,
  ) {
    this.signal = AbortSignal.any([worker, this.over.signal]);
    this.endsAt = this.extend();
    this.timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
  }

  /** Something is going on: the time starts anew. */
  extend(): number {
    this.endsAt = this.clock.now() + this.seconds * 1000;
    return this.endsAt;
  }

  /** Whether the signal aborted because the time was over. */
  get isOver(): boolean {
    return this.over.signal.aborted;
  }

  close(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    if (this.clock.now() >= this.endsAt) {
      this.over.abort(new SandboxBackendError(`The start took longer than ${this.seconds} s.`));
    }
  }
}

const FIRST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 250;
/** Of the time that the start has taken: it seems so much slower at most than it is. */
const LOOK_SHARE = 0.1;

/** A start that succeeded. */
interface StartedSandbox {
  address: string;
  /** Where the ports of what agents start are reached, by name. */
  ports: SandboxFacts['ports'];
  /** What of the specification or of the user's settings has no effect; null: nothing. */
  detail: string | null;
}

/** How far a start is. */
export interface StartProgress {
  /** A line for people about long work. */
  detail: string | null;
  /** Epoch milliseconds; long work moves it. */
  deadlineAt: number;
}

/** Brings the program of a sandbox up until its agent server answers. Touches no row. */
@Injectable()
export class SandboxStarter {
  constructor(
    private readonly readiness: BackendReadiness,
    private readonly backend: SandboxBackend,
    private readonly client: AgentServerClient,
    private readonly launches: LaunchPlanner,
    private readonly clock: Clock,
  ) {}

  /**
   * Starts or resumes the sandbox; one that runs already (a worker died) is only waited for.
   *
   * @param signal aborts the start; what was begun is left to whoever works on the row next
   * @throws SandboxBackendError with the cause when it cannot be started
   */
  async start(
    sandbox: Sandbox,
    signal: AbortSignal,
    onProgress: (progress: StartProgress) => void,
  ): Promise<StartedSandbox> {
    const { launch, notes, startTimeoutSeconds } = this.launches.plan(sandbox);
    await this.readiness.ready();
    const shortfalls: string[] = [];
    const deadline = new StartDeadline(this.clock, startTimeoutSeconds, signal);
    try {
      onProgress({ detail: null, deadlineAt: deadline.extend() });
      await this.launch(
        sandbox,
        {
          ...launch,
          onProgress: (detail) => onProgress({ detail, deadlineAt: deadline.extend() }),
          onShortfall: (sentence) => shortfalls.push(sentence),
        },
        deadline.signal,
      );
      deadline.extend();
      const reached = await this.answering(launch, deadline, startTimeoutSeconds);
      return { ...reached, detail: [...notes, ...shortfalls].join(' ') || null };
    } catch (error) {
      // A backend whose work was cut short may say so in its own way; the cause is ours.
      signal.throwIfAborted();
      throw deadline.isOver && !(error instanceof SandboxBackendError) ? deadline.signal.reason : error;
    } finally {
      deadline.close();
    }
  }

  private async launch(
    { id, generation }: Sandbox,
    launch: SandboxLaunch,
    signal: AbortSignal,
  ): Promise<void> {
    const { state } = await this.backend.inspect(id);
    if (state === 'missing' && generation > 0) {
      throw new SandboxBackendError(FILES_GONE);
    }
    await (state === 'stopped' ? this.backend.resume(launch, signal) : this.backend.start(launch, signal));
  }

  /** Where the agent server answers, and the other ports are. */
  private async answering(
    { id, sessionKey }: SandboxLaunch,
    deadline: StartDeadline,
    seconds: number,
  ): Promise<Pick<StartedSandbox, 'address' | 'ports'>> {
    const startedAt = performance.now();
    let tried: string | null = null;
    for (;;) {
      const facts = await this.backend.inspect(id);
      if (facts.state !== 'running') {
        const log = await this.backend.logTail(id);
        throw new SandboxBackendError(failedWhileStarting({ facts, log, sessionKey }, tried));
      }
      tried = facts.address;
      if (tried !== null && (await this.client.isAlive(tried))) {
        return { address: tried, ports: facts.ports };
      }
      if (deadline.isOver) {
        const log = await this.backend.logTail(id);
        throw new SandboxBackendError(neverAnswered({ log, sessionKey }, tried, seconds));
      }
      const pauseMs = (performance.now() - startedAt) * LOOK_SHARE;
      await this.wait(Math.min(Math.max(pauseMs, FIRST_LOOK_MS), LONGEST_LOOK_MS), deadline);
    }
  }

  /** Ends early when the time is over: then is the last look. */
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
