import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type {
  ACPToolCallEvent,
  Action,
  FinishAction,
  Observation,
  TaskItem,
} from '@slipway/agent-protocol/events.js';
import { clipText, MAX_TOOL_TEXT } from '../../clipped-text.js';
import { NOTED, trackedTasks } from '../../tools/planning.tools.js';
import type { Draft, EngineHost } from '../agent-engine.js';
import { callResult, messageOfAgent, hasCallEnded } from '../agent-events.js';
import type { SessionUpdate, ToolCallReport, ToolContent, ToolStatus } from './acp-schemas.js';

const MAX_DEPTH = 16;

/** The same value if it is small and flat enough for the log, else its JSON as clipped text. Undefined for nothing. */
function boundedJson(value: unknown): unknown {
  if (value === undefined || value === null) {
    return undefined;
  }
  const flat = cut(value, MAX_DEPTH);
  const json = JSON.stringify(flat);
  return json.length > MAX_TOOL_TEXT ? clipText(json) : flat;
}

/** Leaves out deeper members, so that code that walks through events need not handle unlimited depth. */
function cut(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if (depth === 0) {
    return '[...]';
  }
  return Array.isArray(value)
    ? value.map((item) => cut(item, depth - 1))
    : Object.fromEntries(Object.entries(value).map(([key, member]) => [key, cut(member, depth - 1)]));
}

const MAX_MESSAGE = 100_000;
const MAX_TITLE = 500;
const MAX_PARTS = 50;
const MAX_TASKS = 200;

interface KnownCall {
  /** Unique in the conversation, unlike the agent's own id. */
  id: string;
  title: string;
  toolKind: string | null;
  status: ToolStatus;
  input: unknown;
  output: unknown;
  content: ToolContent[] | null;
}

/** Writes what an agent does into the log. The agent's ids need not be unique, and its calls need not end. */
export class AcpTranscript {
  readonly #host: EngineHost;
  /** Calls by the agent's own id. One that has ended stays until the next call with that id. */
  readonly #calls = new Map<string, KnownCall>();
  /** What the log has of calls that have not ended, by the agent's own id. */
  readonly #shown = new Map<string, Omit<ACPToolCallEvent, 'id' | 'timestamp'>>();
  #text = '';
  #messageId: string | null = null;
  #thoughts = '';
  readonly #draft = (): Draft => ({ text: this.#text, reasoning: this.#thoughts });

  constructor(host: EngineHost) {
    this.#host = host;
  }

  begun = 0;

  /** @param messageId by which some agents tell messages apart */
  async addText(text: string, messageId: string | null): Promise<void> {
    if (messageId !== this.#messageId && text !== '' && this.#text !== '') {
      await this.flush();
    }
    this.#messageId = messageId;
    this.#text += text;
    this.#host.showDraft(this.#draft);
    if (this.#text.length > MAX_MESSAGE) {
      await this.flush();
    }
  }

  async addThought(text: string): Promise<void> {
    // Text before a thought is a separate message.
    if (this.#text !== '') {
      await this.flush();
    }
    this.#thoughts += text;
    this.#host.showDraft(this.#draft);
    if (this.#thoughts.length > MAX_MESSAGE) {
      await this.flush();
    }
  }

  async flush(): Promise<void> {
    const [text, thoughts] = [this.#text, this.#thoughts];
    this.#text = '';
    this.#thoughts = '';
    if (text.trim() !== '') {
      await this.#host.append(messageOfAgent(text, thoughts));
    } else if (thoughts.trim() !== '') {
      await this.#call('think', { kind: 'ThinkAction', thought: thoughts }, NOTED);
    }
  }

  /** Takes a report about a tool call and returns the call's id in the log; null if it had ended before. */
  async addCall(report: ToolCallReport, isNew: boolean): Promise<string | null> {
    const known = this.#calls.get(report.toolCallId);
    if (known === undefined || (isNew && hasCallEnded(known))) {
      await this.flush();
      return await this.#begin(report);
    }
    if (hasCallEnded(known)) {
      return null;
    }
    const call = merge(known, report);
    this.#calls.set(report.toolCallId, call);
    if (hasCallEnded(call) || isFirstTold(known, call)) {
      await this.#write(report.toolCallId, call);
    }
    return call.id;
  }

  /** Brings the log up to date with a call that the user may be asked about. */
  async show(agentsId: string): Promise<void> {
    const call = this.#calls.get(agentsId);
    if (
      call !== undefined &&
      !hasCallEnded(call) &&
      !isDeepStrictEqual(toEvent(call), this.#shown.get(agentsId))
    ) {
      await this.#write(agentsId, call);
    }
  }

  kindOf(id: string): string | null {
    return this.#calls.get(id)?.toolKind ?? null;
  }

  /** Ends a call that the user refused; what the agent reports of it later changes nothing. */
  async reject(callId: string, reason: string): Promise<void> {
    for (const [id, call] of this.#calls) {
      if (call.id === callId && !hasCallEnded(call)) {
        const text = `The user rejected the call: ${reason}`;
        const rejected: KnownCall = {
          ...call,
          status: 'failed',
          content: [{ type: 'content', content: text }],
        };
        this.#calls.set(id, rejected);
        await this.#write(id, rejected);
      }
    }
  }

  async addPlan({ entries }: Extract<SessionUpdate, { sessionUpdate: 'plan' }>): Promise<void> {
    await this.flush();
    const tasks = entries.slice(0, MAX_TASKS).map(({ content, status }): TaskItem => ({
      title: clipText(content, MAX_TITLE),
      notes: '',
      status: status === 'pending' ? 'todo' : status === 'completed' ? 'done' : status,
    }));
    const action = { kind: 'TaskTrackerAction', command: 'plan', task_list: tasks } as const;
    await this.#call('task_tracker', action, trackedTasks('plan', tasks));
  }

  async end(status: 'completed' | 'failed'): Promise<void> {
    await this.flush();
    for (const [id, call] of this.#calls) {
      if (!hasCallEnded(call)) {
        const ended = { ...call, status };
        this.#calls.set(id, ended);
        await this.#write(id, ended);
      }
    }
  }

  async #begin(report: ToolCallReport): Promise<string> {
    this.begun += 1;
    const call = merge(
      {
        id: this.#uniqueId(report.toolCallId),
        title: 'Tool call',
        toolKind: null,
        status: 'pending',
        input: undefined,
        output: undefined,
        content: null,
      },
      report,
    );
    this.#calls.set(report.toolCallId, call);
    // The first event says that the call has begun, even if the agent reports at once that it has ended.
    await this.#write(report.toolCallId, hasCallEnded(call) ? { ...call, status: 'in_progress' } : call);
    if (hasCallEnded(call)) {
      await this.#write(report.toolCallId, call);
    }
    return call.id;
  }

  async #write(agentsId: string, call: KnownCall): Promise<void> {
    const event = toEvent(call);
    if (hasCallEnded(call)) {
      this.#shown.delete(agentsId);
    } else {
      this.#shown.set(agentsId, event);
    }
    await this.#host.append(event);
  }

  #uniqueId(id: string): string {
    const isTaken = this.#host
      .events()
      .some((event) => event.kind === 'ACPToolCallEvent' && event.tool_call_id === id);
    return isTaken ? `${id}-${randomUUID()}` : id;
  }

  /** Logs a call of one of our own tools, with its result, in place of what the agent did. */
  async #call(tool: string, action: Exclude<Action, FinishAction>, observation: Observation): Promise<void> {
    const id = `call_${randomUUID()}`;
    const { kind: _kind, ...members } = action;
    const event = await this.#host.append({
      kind: 'ActionEvent',
      source: 'agent',
      thought: [],
      thinking_blocks: [],
      action,
      tool_name: tool,
      tool_call_id: id,
      tool_call: { id, name: tool, arguments: JSON.stringify(members), origin: 'completion' },
      llm_response_id: randomUUID(),
      security_risk: 'LOW',
    });
    await this.#host.append(callResult({ id: event.id, tool_name: tool, tool_call_id: id }, observation));
  }
}

/** Many agents announce a call before their model has written what it does. */
function isFirstTold(known: KnownCall, call: KnownCall): boolean {
  const isNamed = known.status === 'pending' && call.title !== known.title;
  return isNamed || (isEmpty(known.input) && !isEmpty(call.input));
}

function isEmpty(input: unknown): boolean {
  return input === undefined || (typeof input === 'object' && Object.keys(input ?? {}).length === 0);
}

function merge(known: KnownCall, report: ToolCallReport): KnownCall {
  return {
    id: known.id,
    title: report.title ? clipText(report.title, MAX_TITLE) : known.title,
    toolKind: report.kind ?? known.toolKind,
    status: report.status ?? known.status,
    input: report.rawInput ?? known.input,
    output: report.rawOutput ?? known.output,
    content: report.content ?? known.content,
  };
}

function toEvent(call: KnownCall): Omit<ACPToolCallEvent, 'id' | 'timestamp'> {
  return {
    kind: 'ACPToolCallEvent',
    source: 'agent',
    tool_call_id: call.id,
    title: call.title,
    status: call.status,
    tool_kind: call.toolKind,
    raw_input: boundedJson(call.input),
    raw_output: boundedJson(call.output),
    content: call.content?.slice(0, MAX_PARTS).map(toPart) ?? null,
    is_error: call.status === 'failed',
  };
}

/** Uses the member names of the protocol, which clients read. */
function toPart(part: ToolContent): Record<string, unknown> {
  switch (part.type) {
    case 'content':
      return { type: part.type, content: { type: 'text', text: clipText(part.content) } };
    case 'diff':
      return {
        type: part.type,
        path: clipText(part.path, MAX_TITLE),
        ...(typeof part.oldText === 'string' && { old_text: clipText(part.oldText) }),
        new_text: clipText(part.newText),
      };
    case 'terminal':
      return { type: part.type, terminal_id: part.terminalId };
  }
}
