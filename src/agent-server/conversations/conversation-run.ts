import { setTimeout as wait } from 'node:timers/promises';
import type { AgentEvent } from '../../agent-protocol/events.js';
import type { AgentEngine } from '../engine/agent-engine.js';
import { HttpError } from '../http/http-errors.js';
import { describeFailure, log } from '../log.js';
import type { ConversationState } from './conversation-state.js';
import { closeOpenCalls } from './open-calls.js';

interface Waiting {
  take: () => void;
}

/** How many agents may work at the same time; the others wait in the order they came. */
export class RunPlaces {
  readonly #max: number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Waits for a place.
   *
   * @returns what gives the place back; null when the signal aborted first
   */
  async take(signal: AbortSignal): Promise<(() => void) | null> {
    if (signal.aborted) {
      return null;
    }
    if (this.#taken < this.#max) {
      this.#taken += 1;
    } else if (!(await this.#wait(signal))) {
      return null;
    }
    return () => this.#giveBack();
  }

  /** A place is handed over as it is: a newcomer cannot slip in between. */
  #giveBack(): void {
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#taken -= 1;
    } else {
      next.take();
    }
  }

  async #wait(signal: AbortSignal): Promise<boolean> {
    return await new Promise<boolean>((resolve) => {
      const settle = (taken: boolean): void => {
        signal.removeEventListener('abort', leave);
        resolve(taken);
      };
      const waiting = { take: () => settle(true) };
      const leave = (): void => {
        const index = this.#waiting.indexOf(waiting);
        if (index !== -1) {
          this.#waiting.splice(index, 1);
          settle(false);
        }
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(waiting);
    });
  }
}

/** An engine that does not end when it is aborted is left behind after this. */
const ABORT_MS = 5_000;

type Work = (engine: AgentEngine, signal: AbortSignal) => Promise<void>;

interface ActiveRun {
  aborter: AbortController;
  /** The status says that it runs. Never rejects, as `ended` never does. */
  started: Promise<void>;
  ended: Promise<void>;
}

/** The one run that a conversation may have at a time. */
export class ConversationRun {
  readonly #state: ConversationState;
  readonly #createEngine: () => Promise<AgentEngine>;
  readonly #places: RunPlaces;
  readonly #stopped = new AbortController();
  #engine: Promise<AgentEngine> | null = null;
  #waitsForPlace = false;
  #active: ActiveRun | null = null;
  /** A message asked for a run while there was one. */
  #again = false;
  #stopping = false;

  /** @param places shared by all conversations of the server */
  constructor(state: ConversationState, createEngine: () => Promise<AgentEngine>, places: RunPlaces) {
    this.#state = state;
    this.#createEngine = createEngine;
    this.#places = places;
  }

  get isActive(): boolean {
    return this.#active !== null;
  }

  /** The engine says how a run ended a moment before it has: waits for that moment to pass. */
  async settle(): Promise<void> {
    await this.#active?.started;
    while (this.#active !== null && this.#state.record.status !== 'running') {
      await this.#active.ended;
    }
  }

  /** Resolves once the status says so; the run itself goes on. */
  async start(): Promise<void> {
    await this.#begin((engine, signal) => engine.run(this.#state, signal));
  }

  async startOrContinue(): Promise<void> {
    if (this.#active === null) {
      await this.start();
    } else {
      this.#again = true;
    }
  }

  async confirm(accept: boolean, reason: string | null): Promise<void> {
    await this.#begin((engine, signal) => engine.confirm(this.#state, accept, reason, signal));
  }

  /** A question beside the run, if there is one; nothing of it gets into the log. */
  async ask(question: string): Promise<string> {
    const engine = await this.#openEngine();
    return await engine.ask(this.#state, question, this.#stopped.signal);
  }

  /**
   * Makes the history shorter, as a run of its own.
   *
   * @returns whether there was something to leave out
   */
  async condense(): Promise<boolean> {
    const { status } = this.#state.record;
    let condensed = false;
    await this.#begin(async (engine, signal) => {
      condensed = await engine.condense(this.#state, signal);
      if (this.#state.record.status === 'running') {
        await this.#state.setStatus(status);
      }
    });
    await this.#active?.ended;
    return condensed;
  }

  /** @param atOnce aborts the step that is under way */
  async pause(atOnce: boolean): Promise<void> {
    const active = this.#active;
    if (active === null && this.#state.record.status !== 'idle') {
      return;
    }
    this.#again = false;
    if (!this.#state.pauseRequested()) {
      this.#state.requestPause(true);
      await this.#state.append({ kind: 'PauseEvent', source: 'user' });
    }
    if (active === null) {
      this.#state.requestPause(false);
      await this.#state.setStatus('paused');
    } else if (atOnce || this.#waitsForPlace) {
      active.aborter.abort();
      await active.ended;
    }
  }

  /** Ends the run, first after its step, then at once, and closes the engine. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    this.#stopped.abort();
    const active = this.#active;
    if (active !== null) {
      // Before the run ends: whoever kills the server meanwhile does not make it forget.
      await this.#state.change({ wasRunning: !this.#state.pauseRequested() });
      this.#state.requestPause(true);
      if (!this.#waitsForPlace) {
        await within(graceMs, active.ended);
      }
      active.aborter.abort();
      await within(ABORT_MS, active.ended);
      if (this.#state.record.status === 'running') {
        await this.#state.setStatus('paused');
      }
      if (this.#state.record.status !== 'paused') {
        await this.#state.change({ wasRunning: false });
      }
    }
    await this.#closeEngine();
  }

  async #begin(work: Work): Promise<void> {
    if (this.#active !== null || this.#stopping) {
      throw new HttpError(409, 'Conversation already running. Wait for completion or pause first.');
    }
    const aborter = new AbortController();
    const started = Promise.withResolvers<void>();
    this.#state.requestPause(false);
    this.#again = false;
    this.#active = {
      aborter,
      started: started.promise,
      ended: this.#execute(work, aborter.signal, started),
    };
    await started.promise;
  }

  async #execute(work: Work, signal: AbortSignal, started: PromiseWithResolvers<void>): Promise<void> {
    try {
      await this.#state.setStatus('running', { wasRunning: false });
      started.resolve();
      await this.#work(work, signal);
    } catch (error) {
      started.resolve();
      await this.#fail(error, signal);
    }
    await this.#conclude(signal);
  }

  async #work(work: Work, signal: AbortSignal): Promise<void> {
    this.#waitsForPlace = true;
    // A place that becomes free while the server ends is for nobody.
    const giveBack = await this.#places.take(AbortSignal.any([signal, this.#stopped.signal]));
    this.#waitsForPlace = false;
    if (giveBack === null) {
      return;
    }
    try {
      await this.#state.refreshSecrets();
      await work(await this.#openEngine(), signal);
    } finally {
      giveBack();
    }
  }

  async #openEngine(): Promise<AgentEngine> {
    this.#engine ??= this.#createEngine();
    return await this.#engine;
  }

  /** Whatever the engine left open, the conversation is whole again afterwards. */
  async #conclude(signal: AbortSignal): Promise<void> {
    try {
      const { status } = this.#state.record;
      if (status !== 'waiting_for_confirmation') {
        await closeOpenCalls(this.#state, 'The run ended before the tool had answered.');
      }
      if (status === 'running') {
        const isCut = signal.aborted || this.#stopping || this.#state.pauseRequested();
        await this.#state.setStatus(isCut ? 'paused' : 'idle');
      }
    } catch (error) {
      log('error', 'the end of a run could not be written', { reason: describeFailure(error).message });
    }
    this.#state.requestPause(false);
    this.#active = null;
    if (this.#again && !this.#stopping && this.#isWorthAnotherRun()) {
      await this.start().catch((error: unknown) => {
        log('error', 'a run could not be started again', { reason: describeFailure(error).message });
      });
    }
  }

  #isWorthAnotherRun(): boolean {
    const { status } = this.#state.record;
    return (
      status === 'paused' || (['finished', 'idle'].includes(status) && endsUnanswered(this.#state.events()))
    );
  }

  async #fail(failure: unknown, signal: AbortSignal): Promise<void> {
    if (signal.aborted) {
      return;
    }
    const detail = this.#state.masker.text(describeFailure(failure).message);
    log('error', 'a run failed', { conversation: this.#state.record.id, reason: detail });
    // A log that cannot be written is the likely cause: then this fails too, and `conclude` says so.
    await this.#state
      .append({ kind: 'ConversationErrorEvent', source: 'environment', code: 'EngineFailed', detail })
      .catch(() => undefined);
    await this.#state.setStatus('error').catch(() => undefined);
  }

  async #closeEngine(): Promise<void> {
    try {
      await (await this.#engine)?.close();
    } catch (error) {
      log('warn', 'an engine could not be closed', { reason: describeFailure(error).message });
    }
    this.#engine = null;
  }
}

function endsUnanswered(events: readonly AgentEvent[]): boolean {
  const last = events.findLast(
    ({ kind, source }) => kind === 'ActionEvent' || (kind === 'MessageEvent' && source !== 'environment'),
  );
  return last?.source === 'user';
}

async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  const aborter = new AbortController();
  const timer = wait(milliseconds, undefined, { signal: aborter.signal }).catch(() => undefined);
  await Promise.race([work, timer]);
  aborter.abort();
}
