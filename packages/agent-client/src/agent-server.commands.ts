import { setTimeout as delay } from 'node:timers/promises';
import { jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { textTail } from '@slipway/common/well-formed-text.js';
import { AgentServerError, AgentServerHttp } from './agent-server.http.js';
import type { AgentServerTarget } from './agent-server.connections.js';

const FIRST_POLL_MS = 15;
const MAX_POLL_MS = 500;
const POLL_FACTOR = 1.5;
/** Kept small because a piece of output has up to 128,000 characters, and each may take six bytes. */
const PAGE_SIZE = 10;
const PAGE_BOUNDS = { bytes: 8 * 1024 * 1024, values: 100_000 };
const GRACE_MS = 20_000;
/** Only the end of long output is kept, because failures show there. */
const TAIL_CHARACTERS = 8_192;

export interface AgentCommand {
  /** Text for bash. The agent server logs it: never a secret. */
  command: string;
  cwd: string | null;
  timeoutSeconds: number;
  keepCharacters?: number;
  /** Secret variables, which our agent server neither keeps nor logs. */
  env?: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

export interface AgentCommandResult {
  /** -1: the command did not end by itself. */
  exitCode: number;
  output: string;
  stdout: string;
}

/** Runs commands inside sandboxes through their agent servers, ours and the stock one. */
export class AgentServerCommands {
  constructor(private readonly http: AgentServerHttp) {}

  /** Runs a command to its end. Throws AgentServerError, or the signal's reason when it aborts. */
  async run(target: AgentServerTarget, call: AgentCommand): Promise<AgentCommandResult> {
    const { command, cwd, timeoutSeconds, env, signal, keepCharacters = TAIL_CHARACTERS } = call;
    const started = await this.http.json(target, '/api/bash/start_bash_command', {
      method: 'POST',
      body: { command, timeout: timeoutSeconds, ...(cwd !== null && { cwd }), ...(env && { env }) },
      signal,
    });
    const id = jsonText(started, 'id');
    if (id === null) {
      throw new AgentServerError(null, 'its response was not a command');
    }
    const deadline = performance.now() + timeoutSeconds * 1000 + GRACE_MS;
    let [output, stdout] = ['', ''];
    const kept = (text: string): string =>
      text.length > 2 * keepCharacters ? textTail(text, keepCharacters) : text;
    let lastOrder = -1;
    let pollMs = FIRST_POLL_MS;
    while (performance.now() < deadline) {
      signal.throwIfAborted();
      const page = await this.outputs(target, id, lastOrder, signal);
      const before = lastOrder;
      for (const piece of page) {
        const order = jsonNumber(piece, 'order') ?? -1;
        // A server that does not support order__gt repeats earlier pieces.
        if (order <= lastOrder) {
          continue;
        }
        lastOrder = order;
        pollMs = FIRST_POLL_MS;
        const printed = jsonText(piece, 'stdout') ?? '';
        stdout = kept(stdout + printed);
        output = kept(output + printed + (jsonText(piece, 'stderr') ?? ''));
        const exitCode = jsonNumber(piece, 'exit_code');
        if (exitCode !== null) {
          return {
            exitCode,
            output: textTail(output, keepCharacters),
            stdout: textTail(stdout, keepCharacters),
          };
        }
      }
      if (page.length < PAGE_SIZE || lastOrder === before) {
        await delay(pollMs, undefined, { signal });
        pollMs = Math.min(pollMs * POLL_FACTOR, MAX_POLL_MS);
      }
    }
    throw new AgentServerError(null, `a command timed out after ${timeoutSeconds} s`);
  }

  /** On our server only: the stock one returns just the last piece of the output. Throws as `run`. */
  async runShort(target: AgentServerTarget, call: AgentCommand): Promise<AgentCommandResult> {
    const { command, cwd, timeoutSeconds, signal, keepCharacters = TAIL_CHARACTERS } = call;
    const ended = await this.http.json(target, '/api/bash/execute_bash_command', {
      method: 'POST',
      body: { command, timeout: timeoutSeconds, ...(cwd !== null && { cwd }) },
      timeoutMs: timeoutSeconds * 1000 + GRACE_MS,
      bounds: PAGE_BOUNDS,
      signal,
    });
    const exitCode = jsonNumber(ended, 'exit_code');
    if (exitCode === null) {
      throw new AgentServerError(null, 'its response was not the end of a command');
    }
    const stdout = jsonText(ended, 'stdout') ?? '';
    const output = stdout + (jsonText(ended, 'stderr') ?? '');
    return { exitCode, output: textTail(output, keepCharacters), stdout: textTail(stdout, keepCharacters) };
  }

  private async outputs(
    target: AgentServerTarget,
    id: string,
    after: number,
    signal: AbortSignal,
  ): Promise<unknown[]> {
    const page = await this.http.json(target, '/api/bash/bash_events/search', {
      query: {
        command_id__eq: id,
        kind__eq: 'BashOutput',
        ...(after >= 0 && { order__gt: after }),
        sort_order: 'TIMESTAMP',
        limit: PAGE_SIZE,
      },
      bounds: PAGE_BOUNDS,
      signal,
    });
    return jsonList(page, 'items').filter((item) => jsonText(item, 'kind') === 'BashOutput');
  }
}
