import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonAt, jsonNumber, jsonText, parseJson, isJsonObject } from '@slipway/common/json-access.js';
import { conversationFailure } from '../engine/limits.js';
import { HttpError } from '../http/http-error.js';
import { log } from '../observability.js';
import type { ConversationRun } from './conversation-run.js';
import type { ConversationState } from './conversation-state.js';

const KEY = 'goal';
const MAX_MISSING = 2_000;
const UNREADABLE = 'The verdict of the last round could not be read.';
const RESUME =
  'The work on the goal was interrupted and goes on now. Look at how things really are, do not rely on memory, and continue until every requirement is shown to be met.';

interface Verdict {
  /** 0 to 1: how likely the whole goal is shown to be met. */
  score: number;
  complete: boolean;
  missing: string;
}

type GoalStatus = 'running' | 'complete' | 'capped' | 'interrupted';

interface Goal {
  readonly objective: string;
  readonly maxIterations: number;
  iteration: number;
  isJudging: boolean;
  readonly aborter: AbortController;
}

interface GoalOptions {
  state: ConversationState;
  run: ConversationRun;
  /** @throws HttpError 400 when the agent cannot run */
  requireCredentials: () => void;
  /** Adds a message and starts the agent, unless that is no longer wanted once the message is there. */
  send: (text: string, isWanted: () => boolean) => Promise<void>;
}

/**
 * A goal that the agent works towards. After each run, the model judges beside the conversation whether it is met;
 * what is missing is the next message, for a number of rounds. The log has every step, so a goal survives a restart.
 */
export class ConversationGoal {
  readonly #options: GoalOptions;
  #current: Goal | null = null;

  constructor(options: GoalOptions) {
    this.#options = options;
  }

  get isJudging(): boolean {
    return this.#current?.isJudging ?? false;
  }

  /** @throws HttpError 409 while the agent is running or has a goal, 400 when it cannot run */
  async start(objective: string, maxIterations: number): Promise<void> {
    await this.#options.run.settle();
    await this.#begin(newGoal(objective, maxIterations, 0), objective);
  }

  /** @throws HttpError 409 and 400 as `start`, and 400 when no goal was interrupted */
  async resume(): Promise<void> {
    await this.#options.run.settle();
    this.#requireIdle();
    const last = lastGoal(this.#options.state.log.entries);
    if (last === null || last.status !== 'interrupted') {
      throw new HttpError(400, 'There is no interrupted goal to resume.');
    }
    await this.#begin(newGoal(last.objective, last.maxIterations, last.iteration), RESUME);
  }

  /** Ends the work on the goal, not the run. */
  async interrupt(): Promise<void> {
    if (this.#current !== null) {
      await this.#end(this.#current, 'interrupted', null);
    }
  }

  /** The next server finds the open goal in the log, and interrupts it. */
  close(): void {
    this.#current?.aborter.abort();
    this.#current = null;
  }

  /** Call this when a run has ended. Never rejects. */
  async afterRun(): Promise<void> {
    const goal = this.#current;
    if (goal === null || goal.isJudging) {
      return;
    }
    try {
      await this.#decide(goal);
    } catch (error) {
      await this.#fail(goal, errorMessage(error));
    }
  }

  async #begin(goal: Goal, message: string): Promise<void> {
    this.#requireIdle();
    this.#current = goal;
    try {
      await tellGoal(this.#options.state, goal, 'running', null);
      await this.#send(goal, message);
    } catch (error) {
      await this.interrupt();
      throw error;
    }
  }

  #requireIdle(): void {
    if (this.#current !== null || this.#options.run.isActive) {
      throw new HttpError(409, 'Conversation run or goal loop already running.');
    }
    this.#options.requireCredentials();
  }

  async #decide(goal: Goal): Promise<void> {
    const { status } = this.#options.state.record;
    if (status === 'waiting_for_confirmation') {
      return;
    }
    // A run that repeats itself is judged too: what is missing may lead it on.
    if (status !== 'finished' && status !== 'stuck') {
      await this.#end(goal, 'interrupted', null);
      return;
    }
    const verdict = await this.#judge(goal);
    if (this.#current !== goal) {
      return;
    }
    goal.iteration += 1;
    if (verdict.complete) {
      await this.#end(goal, 'complete', verdict);
    } else if (goal.iteration >= goal.maxIterations) {
      await this.#end(goal, 'capped', verdict);
    } else {
      await tellGoal(this.#options.state, goal, 'running', verdict);
      await this.#send(goal, followUp(goal.iteration, verdict.missing));
    }
  }

  async #judge(goal: Goal): Promise<Verdict> {
    goal.isJudging = true;
    try {
      return readVerdict(await this.#options.run.ask(judgement(goal.objective), goal.aborter.signal));
    } finally {
      goal.isJudging = false;
    }
  }

  async #send(goal: Goal, text: string): Promise<void> {
    if (this.#current === goal) {
      await this.#options.send(text, () => this.#current === goal);
    }
  }

  async #end(goal: Goal, status: GoalStatus, verdict: Verdict | null): Promise<void> {
    this.#current = null;
    goal.aborter.abort();
    await tellGoal(this.#options.state, goal, status, verdict);
  }

  async #fail(goal: Goal, reason: string): Promise<void> {
    // The goal has already ended, which made the pending work fail.
    if (this.#current !== goal) {
      return;
    }
    const { state } = this.#options;
    try {
      const detail = `The work on the goal was interrupted: ${reason} Resume it to go on.`;
      await state.append(conversationFailure('GoalInterrupted', detail));
      await this.#end(goal, 'interrupted', null);
    } catch (error) {
      log('error', 'failed to record goal', { conversation_id: state.record.id, error: errorMessage(error) });
    }
  }
}

/** Interrupts the goal that an earlier process, or the copied conversation, was working towards. */
export async function interruptOpenGoal(state: ConversationState): Promise<void> {
  const last = lastGoal(state.log.entries);
  if (last?.status === 'running') {
    await tellGoal(state, last, 'interrupted', null);
  }
}

type ToldGoal = Pick<Goal, 'objective' | 'maxIterations' | 'iteration'>;

async function tellGoal(
  state: ConversationState,
  { objective, maxIterations, iteration }: ToldGoal,
  status: GoalStatus,
  verdict: Verdict | null,
): Promise<void> {
  const active = status === 'running';
  const value = { active, status, iteration, max_iterations: maxIterations, objective, verdict };
  await state.append({ kind: 'ConversationStateUpdateEvent', source: 'environment', key: KEY, value });
  await state.log.sync();
}

function newGoal(objective: string, maxIterations: number, iteration: number): Goal {
  return { objective, maxIterations, iteration, isJudging: false, aborter: new AbortController() };
}

function lastGoal(entries: readonly AgentEvent[]): (ToldGoal & { status: string }) | null {
  const told = entries.findLast(
    (event) => event.kind === 'ConversationStateUpdateEvent' && event.key === KEY,
  );
  const [objective, status] = [jsonText(told, 'value', 'objective'), jsonText(told, 'value', 'status')];
  const iteration = jsonNumber(told, 'value', 'iteration');
  const maxIterations = jsonNumber(told, 'value', 'max_iterations');
  return objective === null || status === null || iteration === null || maxIterations === null
    ? null
    : { objective, status, iteration, maxIterations };
}

function judgement(objective: string): string {
  return `Judge as an auditor whether this goal is met:

<goal>
${objective}
</goal>

Derive the requirements that the goal implies. For each one, look for proof above: the content of files, the output of commands, the results of tests. What is only claimed, uncertain or not checked counts as not met.

Answer with one JSON object and nothing else: {"score": a number from 0 to 1, how likely all of the goal is proven, "complete": true or false, "missing": "what is left to do or to prove, in few words; empty if nothing is"}`;
}

function followUp(iteration: number, missing: string): string {
  return `The goal is not met yet (round ${iteration}).
What is missing: ${missing || 'Some requirements are not shown to be met.'}

Look at how things really are, do not rely on memory. Make progress on each requirement that is left, and prove it with tests or commands. Finish once every requirement of the whole goal is shown to be met.`;
}

/** An unreadable verdict says that the goal is not met. */
function readVerdict(answer: string): Verdict {
  const verdict = [answer, /\{[^]*\}/.exec(answer)?.[0] ?? '']
    .map(parseJson)
    .find((value) => isJsonObject(value));
  if (verdict === undefined) {
    return { score: 0, complete: false, missing: UNREADABLE };
  }
  const score = Math.min(Math.max(jsonNumber(verdict, 'score') ?? 0, 0), 1);
  const complete = jsonAt(verdict, 'complete');
  const missing = jsonText(verdict, 'missing') ?? '';
  return {
    score,
    complete: typeof complete === 'boolean' ? complete : score === 1,
    missing: missing.slice(0, MAX_MISSING).toWellFormed(),
  };
}
