import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../../common/clock.js';
import { AgentServerClient } from '../../agent-servers/agent-server.client.js';
import { parseSandboxAddress } from '../../agent-servers/sandbox-address.js';
import { SandboxBackend, SandboxBackendError, type SandboxFacts } from '../backends/sandbox-backend.js';
import { failedWhileStarting, neverAnswered } from './exit-diagnosis.js';

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

  /** There was progress, so the time starts again. */
  extend(): number {
    this.endsAt = this.clock.now() + this.seconds * 1000;
    return this.endsAt;
  }

  /** Whether the signal aborted because the time is up. */
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
/** A program that listens and has been sent its key takes it in a few milliseconds. */
const ASSIGNING_POLL_MS = 2;
const MAX_ASSIGNING_POLLS = 10;

/** A program that is starting. */
interface AwaitedProgram {
  id: string;
  /** Masked in its output before that is shown; null: it has no key yet. */
  sessionKey: string | null;
}

/** Waits until the agent servers of sandboxes answer. */
@Injectable()
export class AnswerWaiter {
  constructor(
    private readonly backend: SandboxBackend,
    private readonly client: AgentServerClient,
  ) {}

  /**
   * Returns when the agent server answers and has its session key, or, where `sessionKey` is null, waits for one.
   *
   * @returns where it answers, and where the other ports are
   * @throws SandboxBackendError with the cause when it ends, or does not answer in time; the signal's reason
   */
  async untilAnswering(
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
          neverAnswered({ log, sessionKey: program.sessionKey }, address, deadline.seconds),
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

  /**
   * @param tried the address that it had when it was last inspected
   * @throws SandboxBackendError when it has ended
   */
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

  /** Returns early when the time is up, for one last poll. */
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

/**
 * What a backend reports may come from a program in the sandbox.
 *
 * @throws SandboxBackendError unless each address is one that the service may connect to
 */
export function requireAddresses({ address, ports }: SandboxFacts): void {
  const reported = [...(address === null ? [] : [address]), ...Object.values(ports)];
  if (reported.some((each) => parseSandboxAddress(each) === null)) {
    throw new SandboxBackendError(
      'The sandbox reported an invalid address. Start it again; if that does not help, remove it.',
    );
  }
}
