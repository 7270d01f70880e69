import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import { AgentServerError, AgentServerHttp, type AgentServerTarget } from './agent-server.http.js';

/** What people want to see of a failure: its end. */
const KEPT = 8_192;

/** The end of a long text that comes in pieces. */
class OutputTail {
  #text = '';

  add(piece: string): void {
    this.#text += piece;
    if (this.#text.length > 2 * KEPT) {
      this.#text = this.#text.slice(-KEPT);
    }
  }

  get text(): string {
    return this.#text.slice(-KEPT);
  }
}

/** How a command is run. */
interface AgentCommand {
  /** Text for bash. It is kept in the agent server's log: never a secret. */
  command: string;
  /** Null: the workspace. */
  cwd: string | null;
  /** The agent server ends it after that. */
  timeoutSeconds: number;
  /** Ends the waiting; the command itself goes on until its time is over. */
  signal: AbortSignal;
}

interface AgentCommandResult {
  /** -1: it did not end by itself. */
  exitCode: number;
  /** The end of what it wrote, standard error in between. */
  output: string;
  /** The end of its standard output. */
  stdout: string;
}

const FIRST_POLL_MS = 15;
const LONGEST_POLL_MS = 500;
const POLL_FACTOR = 1.5;
const PAGE = 100;
/** After the command's own time: the server's to say that it is over. */
const PATIENCE_MS = 20_000;

/** Runs commands inside of sandboxes through their agent servers, ours and the stock one. */
@Injectable()
export class AgentServerCommands {
  constructor(private readonly http: AgentServerHttp) {}

  /**
   * Runs a command to its end.
   *
   * @throws AgentServerError when the agent server does not do as it should
   * @throws the signal's reason when it aborts
   */
  async run(target: AgentServerTarget, call: AgentCommand): Promise<AgentCommandResult> {
    const { command, cwd, timeoutSeconds, signal } = call;
    const started = await this.http.json(target, '/api/bash/start_bash_command', {
      method: 'POST',
      body: { command, timeout: timeoutSeconds, ...(cwd !== null && { cwd }) },
      signal,
    });
    const id = jsonText(started, 'id');
    if (id === null) {
      throw new AgentServerError(null, 'its answer was not a command');
    }
    const deadline = performance.now() + timeoutSeconds * 1000 + PATIENCE_MS;
    const all = new OutputTail();
    const stdout = new OutputTail();
    let order = -1;
    let pause = FIRST_POLL_MS;
    while (performance.now() < deadline) {
      signal.throwIfAborted();
      const page = await this.outputs(target, id, order, signal);
      for (const piece of page) {
        const at = jsonNumber(piece, 'order') ?? -1;
        // A server that does not know order__gt repeats what was seen.
        if (at <= order) {
          continue;
        }
        order = at;
        pause = FIRST_POLL_MS;
        stdout.add(jsonText(piece, 'stdout') ?? '');
        all.add((jsonText(piece, 'stdout') ?? '') + (jsonText(piece, 'stderr') ?? ''));
        const exitCode = jsonNumber(piece, 'exit_code');
        if (exitCode !== null) {
          return { exitCode, output: all.text, stdout: stdout.text };
        }
      }
      if (page.length < PAGE) {
        await delay(pause, undefined, { signal });
        pause = Math.min(pause * POLL_FACTOR, LONGEST_POLL_MS);
      }
    }
    throw new AgentServerError(null, 'a command did not end in its time');
  }

  private async outputs(
    target: AgentServerTarget,
    id: string,
    after: number,
    signal: AbortSignal,
  ): Promise<unknown[]> {
    const answer = await this.http.json(target, '/api/bash/bash_events/search', {
      query: {
        command_id__eq: id,
        kind__eq: 'BashOutput',
        ...(after >= 0 && { order__gt: after }),
        sort_order: 'TIMESTAMP',
        limit: PAGE,
      },
      signal,
    });
    return jsonList(answer, 'items').filter((item) => jsonText(item, 'kind') === 'BashOutput');
  }
}
