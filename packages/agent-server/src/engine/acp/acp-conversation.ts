import type { ReadTextFileRequest, WriteTextFileRequest } from '@agentclientprotocol/sdk';
import path from 'node:path';
import pLimit from 'p-limit';
import { textHead } from '@slipway/common/well-formed-text.js';
import { WorkspaceFiles } from '../../files/workspace-files.js';
import type { ToolView } from '../../tool-view.js';
import type { EngineHost } from '../agent-engine.js';
import { limitReached } from '../limits.js';
import type { PermissionOutcome, PermissionRequest, SessionUpdate } from './acp-schemas.js';
import { AcpTerminals } from './acp-terminals.js';
import { AcpTranscript } from './acp-transcript.js';
import { type AcpTurn, mustAsk, countCost } from './acp-turn.js';

const MAX_FILE_BYTES = 4 * 1024 * 1024;
const MAX_ANSWER = 100_000;

/** Our side of an agent's session: logs what the agent does, and does what it asks for. */
export class AcpConversation {
  readonly terminals: AcpTerminals;
  readonly #host: EngineHost;
  readonly #files: WorkspaceFiles;
  readonly #transcript: AcpTranscript;
  #sessionId: string | null = null;
  #turn: AcpTurn | null = null;
  #countedCalls = 0;
  /** Updates and questions may arrive at the same time. */
  readonly #inOrder = pLimit(1);
  readonly #forks = new Map<string, string>();

  constructor(host: EngineHost, view: ToolView) {
    this.#host = host;
    this.#files = new WorkspaceFiles(view, [host.settings.workingDir]);
    this.terminals = new AcpTerminals(view, host, () => this.#turn?.touch());
    this.#transcript = new AcpTranscript(host);
  }

  get begunCalls(): number {
    return this.#transcript.begun;
  }

  /** Ends the replay: before this call, the agent only repeats what the log already has. */
  open(sessionId: string): void {
    this.#sessionId = sessionId;
  }

  begin(turn: AcpTurn): void {
    this.#turn = turn;
    this.#transcript.begun = 0;
    this.#countedCalls = 0;
  }

  /** Ends the turn: whatever the agent reports about it later is too late. */
  async end(status: 'completed' | 'failed'): Promise<void> {
    await this.#inOrder(async () => {
      this.#turn = null;
      await this.#transcript.end(status);
    });
  }

  async reject(turn: AcpTurn, reason: string | null): Promise<void> {
    await this.#inOrder(async () => {
      for (const { callId } of turn.questions) {
        await this.#transcript.reject(callId, reason ?? 'no reason given');
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
    if (sessionId !== this.#sessionId) {
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
    if (sessionId !== this.#sessionId || turn === null) {
      return { outcome: 'cancelled' };
    }
    turn.touch();
    const { confirmationPolicy } = this.#host.settings;
    const asks = (): boolean => mustAsk(confirmationPolicy, this.#transcript.kindOf(toolCall.toolCallId));
    const callId = await this.#inOrder(async () => {
      const id = await this.#transcript.addCall(toolCall, false);
      if (asks()) {
        await this.#transcript.show(toolCall.toolCallId);
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
    await this.#files.write(this.#absolute(file), toBytes(content));
  }

  async #write(update: SessionUpdate, turn: AcpTurn | null): Promise<void> {
    if (update.sessionUpdate === 'usage_update') {
      // Counted between turns too, because some agents report the cost after their answer.
      if (update.cost) {
        await countCost(this.#host, update.cost);
        this.#checkLimit(turn);
      }
      return;
    }
    if (turn === null) {
      return;
    }
    switch (update.sessionUpdate) {
      case 'agent_message_chunk': {
        const { content, messageId, _meta: meta } = update;
        turn.spent.promptTokens += meta?.usage.inputTokens ?? 0;
        turn.spent.completionTokens += meta?.usage.outputTokens ?? 0;
        await this.#transcript.addText(content, messageId ?? null);
        return;
      }
      case 'agent_thought_chunk':
        await this.#transcript.addThought(update.content);
        return;
      case 'tool_call':
      case 'tool_call_update':
        await this.#transcript.addCall(update, update.sessionUpdate === 'tool_call');
        await this.#countCall(turn);
        return;
      case 'plan':
        await this.#transcript.addPlan(update);
    }
  }

  /** Each tool call is a step. */
  async #countCall(turn: AcpTurn): Promise<void> {
    if (this.#countedCalls < this.#transcript.begun) {
      this.#countedCalls = this.#transcript.begun;
      await this.#host.addUsage({ promptTokens: 0, completionTokens: 0, costUsd: 0, isStep: true });
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

async function* toBytes(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content, 'utf8');
}
