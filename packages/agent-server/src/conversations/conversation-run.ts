import pLimit, { type LimitFunction } from 'p-limit';
import { isUserMessage, type AgentEvent } from '@slipway/agent-protocol/events.js';
import { within } from '@slipway/common/async.js';
import { errorMessage, errorWithCauses } from '@slipway/common/errors/error-message.js';
import type { AgentEngine, ExecutionStatus } from '../engine/agent-engine.js';
import { conversationFailure } from '../engine/limits.js';
import { closeOpenCalls, openCalls } from '../engine/agent-events.js';
import { HttpError } from '../http/http-error.js';
import { log } from '../observability.js';
import type { ConversationState } from './conversation-state.js';

/** An engine that does not end within this time after an abort is abandoned. */
const ABORT_GRACE_MS = 5_000;
/** How long to wait for a rejection to be logged; an agent that responds to it takes longer. */
const REFUSAL_MS = 1_000;
/** Time without a run after which garbage is collected. */
const IDLE_MS = 10_000;

type Work = (engine: AgentEngine, signal: AbortSignal) => Promise<void>;

interface ActiveRun {
  aborter: AbortController;
  /** Resolves once the status is `running`. Neither promise ever rejects. */
  started: Promise<void>;
  ended: Promise<void>;
}

export interface RunLimits {
  slots: RunSlots;
  pauseGraceMs: number;
}

export class ConversationRun {
  readonly #state: ConversationState;
  readonly #createEngine: () => Promise<AgentEngine>;
  readonly #limits: RunLimits;
  readonly #onEnd: () => void;
  readonly #stopped = new AbortController();
  #engine: Promise<AgentEngine> | null = null;
  #isQueued = false;
  #active: ActiveRun | null = null;
  /** A message asked for a run while one was active. */
  #runAgain = false;
  #stopping = false;

  /** @param onEnd called when a run has ended and no other follows it */
  constructor(
    state: ConversationState,
    createEngine: () => Promise<AgentEngine>,
    limits: RunLimits,
    onEnd: () => void = () => undefined,
  ) {
    this.#state = state;
    this.#createEngine = createEngine;
    this.#limits = limits;
    this.#onEnd = onEnd;
  }

  get isActive(): boolean {
    return this.#active !== null;
  }

  /** The engine sets the final status shortly before its run ends: waits until the two agree. */
  async settle(): Promise<void> {
    await this.#active?.started;
    while (this.#active !== null && this.#state.record.status !== 'running') {
      await this.#active.ended;
    }
  }

  async start(): Promise<void> {
    await this.#begin((engine, signal) => engine.run(this.#state, signal));
  }

  /** Starts a run. If a run is active and ends without answering the message, another run follows it. */
  async startOrContinue(): Promise<void> {
    if (this.#active === null) {
      await this.start();
    } else {
      this.#runAgain = true;
    }
  }

  /** Resolves once the status is `running`, or after a rejection once the run has ended, if it ends soon. */
  async confirm(rejection: string | null): Promise<void> {
    await this.#begin((engine, signal) => engine.confirm(this.#state, rejection, signal));
    if (rejection !== null && this.#active !== null) {
      await within(REFUSAL_MS, this.#active.ended);
    }
  }

  async prepare(): Promise<void> {
    await this.#state.refreshSecrets();
    const engine = await this.#openEngine();
    await engine.prepare(this.#state);
  }

  async switchModel(model: string): Promise<void> {
    const engine = await this.#openEngine();
    await engine.switchModel(this.#state, model);
  }

  async ask(question: string, signal: AbortSignal = this.#stopped.signal): Promise<string> {
    const engine = await this.#openEngine();
    return await engine.ask(this.#state, question, AbortSignal.any([signal, this.#stopped.signal]));
  }

  async condense(): Promise<boolean> {
    const { status } = this.#state.record;
    let condensed = false;
    await this.#begin(async (engine, signal) => {
      condensed = await engine.condense(this.#state, signal);
    }, status);
    await this.#active?.ended;
    return condensed;
  }

  /** Ends the run without waiting for the model. A running tool gets its grace period, unless `immediately` is set. */
  async pause(immediately: boolean): Promise<void> {
    const active = this.#active;
    const { status, wasRunning } = this.#state.record;
    if (active === null && status !== 'idle' && !wasRunning) {
      return;
    }
    this.#runAgain = false;
    if (!this.#state.pauseSignal().aborted) {
      this.#state.requestPause(true);
      await this.#state.append({ kind: 'PauseEvent', source: 'user' });
    }
    if (active === null) {
      this.#state.requestPause(false);
      if (wasRunning) {
        await this.#state.change({ wasRunning: false });
      }
      await this.#state.setStatus('paused');
    } else if (immediately || this.#isQueued || openCalls(this.#state.events()).length === 0) {
      active.aborter.abort();
      await within(ABORT_GRACE_MS, active.ended);
    } else {
      const timer = setTimeout(() => active.aborter.abort(), this.#limits.pauseGraceMs).unref();
      void active.ended.then(() => clearTimeout(timer));
    }
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    this.#stopped.abort();
    const active = this.#active;
    if (active !== null) {
      // Written before the run ends, so that it is remembered even if the server is killed meanwhile.
      const isRun = !this.#state.record.rest;
      await this.#state.change({ wasRunning: isRun && !this.#state.pauseSignal().aborted });
      this.#state.requestPause(true);
      if (!this.#isQueued) {
        await within(graceMs, active.ended);
      }
      active.aborter.abort();
      await within(ABORT_GRACE_MS, active.ended);
      if (this.#state.record.status === 'running') {
        await this.#state.setStatus('paused');
      }
      if (this.#state.record.status !== 'paused') {
        await this.#state.change({ wasRunning: false });
      }
    }
    await this.#closeEngine();
  }

  /** A `rest` marks work that is not a run: nothing continues it, and `rest` is the status afterwards. */
  async #begin(work: Work, rest: ExecutionStatus | null = null): Promise<void> {
    if (this.#active !== null || this.#stopping) {
      throw new HttpError(409, 'Conversation already running. Wait for completion or pause first.');
    }
    const aborter = new AbortController();
    const started = Promise.withResolvers<void>();
    this.#state.requestPause(false);
    this.#runAgain = false;
    this.#active = {
      aborter,
      started: started.promise,
      ended: this.#execute(work, rest, aborter.signal, started),
    };
    await started.promise;
  }

  async #execute(
    work: Work,
    rest: ExecutionStatus | null,
    signal: AbortSignal,
    started: PromiseWithResolvers<void>,
  ): Promise<void> {
    try {
      await this.#state.setStatus('running', { wasRunning: false, rest });
      started.resolve();
      await this.#work(work, signal);
    } catch (error) {
      started.resolve();
      await this.#fail(error, signal);
    }
    await this.#conclude(signal);
  }

  async #work(work: Work, signal: AbortSignal): Promise<void> {
    this.#isQueued = true;
    // While the server stops, a slot that becomes free must not start a run.
    const release = await this.#limits.slots.acquire(AbortSignal.any([signal, this.#stopped.signal]));
    this.#isQueued = false;
    if (release === null) {
      return;
    }
    try {
      await this.#state.refreshSecrets();
      await this.#state.openSkills();
      await work(await this.#openEngine(), signal);
    } finally {
      release();
    }
  }

  async #openEngine(): Promise<AgentEngine> {
    this.#engine ??= this.#createEngine().catch((error: unknown) => {
      this.#engine = null;
      throw error;
    });
    return await this.#engine;
  }

  async #conclude(signal: AbortSignal): Promise<void> {
    try {
      const { status, rest } = this.#state.record;
      const isOver = status === 'running' || (status === 'paused' && this.#stopping);
      const after = isOver && rest ? rest : status;
      if (after !== 'waiting_for_confirmation') {
        await closeOpenCalls(this.#state, 'The run ended before the tool returned a result.');
      }
      if (after !== status) {
        await this.#state.setStatus(after);
      } else if (status === 'running') {
        const wasInterrupted = signal.aborted || this.#stopping || this.#state.pauseSignal().aborted;
        await this.#state.setStatus(wasInterrupted ? 'paused' : 'idle');
      }
    } catch (error) {
      this.#log('failed to record end of run', error);
    }
    this.#state.requestPause(false);
    this.#active = null;
    if (this.#runAgain && !this.#stopping && this.#needsAnotherRun()) {
      await this.start().catch((error: unknown) => this.#log('failed to restart run', error));
    } else if (!this.#stopping) {
      this.#onEnd();
    }
  }

  #needsAnotherRun(): boolean {
    const { status } = this.#state.record;
    return (
      status === 'paused' || (['finished', 'idle'].includes(status) && endsUnanswered(this.#state.events()))
    );
  }

  async #fail(failure: unknown, signal: AbortSignal): Promise<void> {
    if (signal.aborted) {
      return;
    }
    const detail = this.#state.masker.text(errorWithCauses(failure));
    log('error', 'failed to run agent', { conversation_id: this.#state.record.id, error: detail });
    // The likely cause is an event log that cannot be written: then this fails too, and `conclude` logs it.
    await this.#state.append(conversationFailure('EngineFailed', detail)).catch(() => undefined);
    await this.#state.setStatus('error').catch(() => undefined);
  }

  async #closeEngine(): Promise<void> {
    try {
      await (await this.#engine)?.close();
    } catch (error) {
      this.#log('failed to close engine', error, 'warn');
    }
    this.#engine = null;
  }

  #log(message: string, error: unknown, level: 'warn' | 'error' = 'error'): void {
    log(level, message, { conversation_id: this.#state.record.id, error: errorMessage(error) });
  }
}

function endsUnanswered(events: readonly AgentEvent[]): boolean {
  const last = events.findLast(
    ({ kind, source }) => kind === 'ActionEvent' || (kind === 'MessageEvent' && source !== 'environment'),
  );
  return last !== undefined && isUserMessage(last);
}

/**
 * Limits how many agents run at once; further runs queue in order of arrival. An aborted engine keeps its slot until
 * it ends, but a queued run leaves at once, and its turn is skipped.
 */
export class RunSlots {
  readonly #inOrder: LimitFunction;
  #inUse = 0;
  /** V8 would keep what a run no longer needs until the next one, which may be hours later (docs/adr/0049). */
  readonly #collection = setTimeout(() => this.#inUse || globalThis.gc?.(), IDLE_MS).unref();

  constructor(max: number) {
    this.#inOrder = pLimit(max);
  }

  /** Waits for a slot and returns the function that releases it; null if the signal aborted first. */
  async acquire(signal: AbortSignal): Promise<(() => void) | null> {
    const released = Promise.withResolvers<void>();
    const entered = new Promise<boolean>((resolve) => {
      signal.addEventListener('abort', () => resolve(false), { once: true });
      void this.#inOrder(async () => {
        if (!signal.aborted) {
          this.#inUse += 1;
          resolve(true);
          await released.promise;
        }
      });
    });
    if (signal.aborted || !(await entered)) {
      return null;
    }
    return () => {
      this.#inUse -= 1;
      this.#collection.refresh();
      released.resolve();
    };
  }
}
