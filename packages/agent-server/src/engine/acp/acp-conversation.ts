import type {
  CreateTerminalRequest,
  ReadTextFileRequest,
  WriteTextFileRequest,
} from '@agentclientprotocol/sdk';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import pLimit from 'p-limit';
import { textHead } from '@slipway/common/well-formed-text.js';
import { WorkspaceFiles } from '../../files/workspace-files.js';
import { readToEnd, startProcess } from '../../process-tree.js';
import { inFolder, type ToolView, VIEW_START } from '../../tool-view.js';
import type { EngineHost } from '../agent-engine.js';
import { limitReached } from '../limits.js';
import type { PermissionOutcome, PermissionRequest, SessionUpdate } from './acp-schemas.js';
import { AcpTranscript } from './acp-transcript.js';
import { type AcpTurn, mustAsk, countCost } from './acp-turn.js';

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_ANSWER = 100_000;

/** Our side of an agent's session: logs what the agent does, and does what it asks for. */
export class AcpConversation {
  readonly terminals: AcpTerminals;
  readonly #host: EngineHost;
  readonly #files: WorkspaceFiles;
  /** Null during the replay: before it is set, the agent only repeats what the log already has. */
  sessionId: string | null = null;
  readonly transcript: AcpTranscript;
  #turn: AcpTurn | null = null;
  #countedCalls = 0;
  /** Updates and questions may arrive at the same time. */
  readonly #inOrder = pLimit(1);
  readonly #forks = new Map<string, string>();

  constructor(host: EngineHost, view: ToolView) {
    this.#host = host;
    this.#files = new WorkspaceFiles(view, [host.settings.workingDir]);
    this.terminals = new AcpTerminals(view, host, () => this.#turn?.touch());
    this.transcript = new AcpTranscript(host);
  }

  begin(turn: AcpTurn): void {
    this.#turn = turn;
    this.transcript.begun = 0;
    this.#countedCalls = 0;
  }

  /** Ends the turn: whatever the agent reports about it later is too late. */
  async end(status: 'completed' | 'failed'): Promise<void> {
    await this.#inOrder(async () => {
      this.#turn = null;
      await this.transcript.end(status);
    });
  }

  async reject(turn: AcpTurn, reason: string): Promise<void> {
    await this.#inOrder(async () => {
      for (const { callId } of turn.questions) {
        await this.transcript.reject(callId, reason);
      }
    });
  }

  async collect(sessionId: string, work: () => Promise<void>): Promise<string> {
    this.#forks.set(sessionId, '');
    try {
      await work();
      return this.#forks.get(sessionId) ?? '';
    } finally {
      this.#forks.delete(sessionId);
    }
  }

  /** Never rejects; the agent's next message is read when it resolves. */
  async update(sessionId: string, update: SessionUpdate): Promise<void> {
    const answer = this.#forks.get(sessionId);
    if (answer !== undefined && update.sessionUpdate === 'agent_message_chunk') {
      this.#forks.set(sessionId, textHead(answer + update.content, MAX_ANSWER));
    }
    if (sessionId !== this.sessionId) {
      return;
    }
    await this.#inOrder(async () => {
      const turn = this.#turn;
      turn?.touch();
      try {
        await this.#write(update, turn);
      } catch (error) {
        turn?.fail(error);
      }
    });
  }

  async requestPermission({ sessionId, toolCall, options }: PermissionRequest): Promise<PermissionOutcome> {
    const turn = this.#turn;
    // The user is not asked about calls in forked sessions.
    if (sessionId !== this.sessionId || turn === null) {
      return { outcome: 'cancelled' };
    }
    turn.touch();
    const { confirmationPolicy } = this.#host.settings;
    const asks = (): boolean => mustAsk(confirmationPolicy, this.transcript.kindOf(toolCall.toolCallId));
    const callId = await this.#inOrder(async () => {
      const id = await this.transcript.addCall(toolCall, false);
      if (asks()) {
        await this.transcript.show(toolCall.toolCallId);
      }
      await this.#countCall(turn);
      return id;
    });
    if (callId === null) {
      return { outcome: 'cancelled' };
    }
    return asks() ? await turn.ask(callId, options) : turn.allow(options);
  }

  async readTextFile({ path: file, line = null, limit = null }: ReadTextFileRequest): Promise<string> {
    const text = (await this.#files.read(this.#absolute(file), MAX_FILE_BYTES)).toString('utf8');
    if (line === null && limit === null) {
      return text;
    }
    const start = Math.max((line ?? 1) - 1, 0);
    return text
      .split('\n')
      .slice(start, limit === null ? undefined : start + limit)
      .join('\n');
  }

  async writeTextFile({ path: file, content }: WriteTextFileRequest): Promise<void> {
    await this.#files.write(this.#absolute(file), Readable.from([Buffer.from(content)]));
  }

  async #write(update: SessionUpdate, turn: AcpTurn | null): Promise<void> {
    // Counted between turns too, because some agents report the cost after their answer.
    if (update.sessionUpdate === 'usage_update' && update.cost) {
      await countCost(this.#host, update.cost);
      this.#checkLimit(turn);
    }
    if (turn === null) {
      return;
    }
    switch (update.sessionUpdate) {
      case 'agent_message_chunk': {
        const { content, messageId, _meta: meta } = update;
        turn.spent.promptTokens += meta?.usage.inputTokens ?? 0;
        turn.spent.completionTokens += meta?.usage.outputTokens ?? 0;
        await this.transcript.addText(content, messageId ?? null);
        return;
      }
      case 'agent_thought_chunk':
        await this.transcript.addThought(update.content);
        return;
      case 'tool_call':
      case 'tool_call_update':
        await this.transcript.addCall(update, update.sessionUpdate === 'tool_call');
        await this.#countCall(turn);
        return;
      case 'plan':
        await this.transcript.addPlan(update);
    }
  }

  /** Each tool call is a step. */
  async #countCall(turn: AcpTurn): Promise<void> {
    if (this.#countedCalls < this.transcript.begun) {
      this.#countedCalls = this.transcript.begun;
      const nothing = { promptTokens: 0, completionTokens: 0, costUsd: 0, costSource: 'unknown' } as const;
      await this.#host.addUsage({ ...nothing, isStep: true });
    }
    this.#checkLimit(turn);
  }

  /** Stops the turn at a limit, but only after the last call that is within it. */
  #checkLimit(turn: AcpTurn | null): void {
    const { iterations, costUsd } = this.#host.totals();
    const limit = limitReached(this.#host.settings, { costUsd, iterations: iterations - 1 });
    if (limit !== null) {
      turn?.stop(limit);
    }
  }

  /** The protocol wants absolute paths. */
  #absolute(file: string): string {
    return path.resolve(this.#host.settings.workingDir, file);
  }
}

const MAX_TERMINALS = 32;
const MAX_OUTPUT_BYTES = 1024 * 1024;

interface ExitStatus {
  exitCode: number | null;
  signal: string | null;
}

interface Terminal {
  output: OutputTail;
  exit: ExitStatus | null;
  /** Never rejects. */
  exited: Promise<ExitStatus>;
  kill: () => Promise<void>;
}

/** Commands that an agent has us run, in the view of tools; the conversation's end closes all terminals. */
export class AcpTerminals {
  readonly #view: ToolView;
  readonly #host: EngineHost;
  readonly #touch: () => void;
  readonly #terminals = new Map<string, Terminal>();

  /** @param touch called when the agent reads from a terminal */
  constructor(view: ToolView, host: EngineHost, touch: () => void) {
    this.#view = view;
    this.#host = host;
    this.#touch = touch;
  }

  /** @throws Error with a message for the agent */
  async create({ command, args, cwd, env, outputByteLimit }: CreateTerminalRequest): Promise<string> {
    if (this.#terminals.size >= MAX_TERMINALS) {
      throw new Error(`there are ${MAX_TERMINALS} terminals, the most allowed: release one first`);
    }
    const id = `terminal-${randomUUID()}`;
    const output = new OutputTail(Math.min(outputByteLimit ?? MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES));
    const line = args?.length ? [command, ...args] : ['bash', '-c', command];
    const variables = (env ?? []).map(({ name, value }) => [name, value]);
    const { stdout, stderr, exited, kill } = await startProcess(
      {
        command: inFolder(this.#view, cwd ?? this.#host.settings.workingDir, line),
        cwd: VIEW_START,
        env: { ...this.#host.toolEnvironment(), ...Object.fromEntries(variables) },
      },
      ['ignore', 'pipe', 'pipe'],
    );
    [stdout, stderr].forEach((stream) => stream.on('data', (chunk: Buffer) => output.push(chunk)));
    const terminal: Terminal = {
      output,
      exit: null,
      kill,
      exited: exited.then(
        async (code) => {
          // Processes that it left behind would keep its output open.
          await kill();
          await readToEnd([stdout, stderr]);
          terminal.exit = toExitStatus(code);
          return terminal.exit;
        },
        () => ({ exitCode: null, signal: 'SIGKILL' }),
      ),
    };
    this.#terminals.set(id, terminal);
    return id;
  }

  /** @throws Error with a message for the agent */
  output(id: string): { output: string; truncated: boolean; exitStatus?: ExitStatus } {
    this.#touch();
    const { output, exit } = this.#get(id);
    return { output: output.text(), truncated: output.isCut, ...(exit !== null && { exitStatus: exit }) };
  }

  async wait(id: string): Promise<ExitStatus> {
    const exit = await this.#get(id).exited;
    this.#touch();
    return exit;
  }

  async kill(id: string): Promise<void> {
    await this.#get(id).kill();
  }

  async release(id: string): Promise<void> {
    const { kill } = this.#get(id);
    this.#terminals.delete(id);
    await kill();
  }

  async close(): Promise<void> {
    const open = [...this.#terminals.values()];
    this.#terminals.clear();
    await Promise.all(open.map(async ({ kill }) => await kill()));
  }

  #get(id: string): Terminal {
    const terminal = this.#terminals.get(id);
    if (terminal === undefined) {
      throw new Error('there is no such terminal');
    }
    return terminal;
  }
}

class OutputTail {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #size = 0;
  isCut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    // Cut only at twice the limit: cutting with each chunk would copy everything each time.
    if (this.#size > 2 * this.#limit) {
      this.#cut();
    }
  }

  text(): string {
    if (this.#size > this.#limit) {
      this.#cut();
    }
    // A character that was cut in two is left out.
    return Buffer.concat(this.#chunks)
      .toString('utf8')
      .replace(/^\uFFFD+/, '');
  }

  #cut(): void {
    const all = Buffer.concat(this.#chunks);
    const kept = Buffer.from(all.subarray(all.length - this.#limit));
    this.#chunks = [kept];
    this.#size = kept.length;
    this.isCut = true;
  }
}

function toExitStatus(code: number): ExitStatus {
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return code > 128 && signal !== undefined ? { exitCode: null, signal } : { exitCode: code, signal: null };
}
