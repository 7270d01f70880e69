import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { askAgain, type Schemas } from '../api/client.js';
import { PATH_PREFIX } from '../api/path-prefix.js';
import type { Conversation } from './conversation-queries.js';

type TextPart = { type: string; text?: string };

/** Which members there are depends on the tool. */
interface AgentAction {
  kind: string;
  command?: string;
  path?: string;
  file_text?: string | null;
  old_str?: string | null;
  new_str?: string | null;
  thought?: string;
  message?: string;
  task_list?: { title: string; status: string }[];
  data?: Record<string, unknown>;
}

type Edit = { path?: string | null; old_content?: string | null; new_content?: string | null };
type Observation = Schemas['Observation'] & Edit & { exit_code?: number | null };

/** What agents of others attach to their calls. */
type CallPart = { type: string; content?: TextPart; path?: string; old_text?: string; new_text?: string };

type Member<E, K> = E extends unknown ? (K extends keyof E ? E[K] : never) : never;
type Members<E> = { [K in E extends unknown ? keyof E : never]?: Member<E, K> };
type Untyped = 'kind' | 'action' | 'observation' | 'content';

/** An event with the members of all kinds, each optional. */
export type AgentEvent = Pick<Schemas['PauseEvent'], 'id' | 'timestamp' | 'source'> &
  Omit<Members<Schemas['Event']>, Untyped> & {
    kind: string;
    action?: AgentAction | null;
    observation?: Observation;
    content?: unknown[] | string | null;
  };

/** A stream delivers each kind by its name. */
const KINDS = `MessageEvent ActionEvent ObservationEvent AgentErrorEvent UserRejectObservation ACPToolCallEvent
  ConversationStateUpdateEvent PauseEvent ConversationErrorEvent Condensation`.split(/\s+/);

/** Key of the state that tells what the network refused. */
export const DENIED = 'EgressDenied';

/** A call of a tool with what became of it. */
export type Step = { event: AgentEvent; result: AgentEvent | null };

/** The events in their order; what a tool returned stands with its call. */
export function stepsOf(events: readonly AgentEvent[]): Step[] {
  const steps: Step[] = [];
  const calls = new Map<string, Step>();
  for (const event of events) {
    const call = event.kind === 'ActionEvent' ? undefined : calls.get(event.tool_call_id ?? '');
    if (call !== undefined) {
      // An agent that runs its own tools repeats the event when the call ends.
      call[event.kind === 'ACPToolCallEvent' ? 'event' : 'result'] = event;
    } else if (event.kind !== 'ConversationStateUpdateEvent' || event.key === DENIED) {
      const step = { event, result: null };
      steps.push(step);
      calls.set(event.tool_call_id ?? event.id, step);
    }
  }
  return steps;
}

/** What an agent of others attached to its call. */
export function attachedOf({ content }: AgentEvent): CallPart[] {
  return Array.isArray(content) ? content.filter(isCallPart) : [];
}

function isCallPart(part: unknown): part is CallPart {
  return typeof part === 'object' && part !== null && 'type' in part;
}

/** Whether nothing came of it yet. */
export function isOpen({ event: { kind, status }, result }: Step): boolean {
  return kind === 'ACPToolCallEvent' ? status !== 'completed' && status !== 'failed' : result === null;
}

export function isOfUser({ kind, source }: AgentEvent): boolean {
  return kind === 'MessageEvent' && source === 'user';
}

export function textOf(parts: readonly TextPart[] | undefined): string {
  return (parts ?? []).map(({ type, text }) => text ?? `[${type}]`).join('\n');
}

export function thinkingOf({ llm_message: message, ...event }: AgentEvent): string {
  const { reasoning_content: reasoning, thinking_blocks: blocks } = message ?? event;
  return reasoning ?? (blocks ?? []).map((block) => ('thinking' in block ? block.thinking : '')).join('\n');
}

/** The latest state that the events tell, or null. */
export function statusOf(events: readonly AgentEvent[]): string | null {
  const last = events.findLast(({ key }) => key === 'execution_status');
  return typeof last?.value === 'string' ? last.value : null;
}

export interface Events {
  list: readonly AgentEvent[];
  /** Whether the service can be heard. */
  isLive: boolean;
  /** Whether it refused the stream, and is not asked again. */
  isRefused: boolean;
}

const NONE: Events = { list: [], isLive: false, isRefused: false };

const RETRY_MS = 2_000;

/**
 * The events of a conversation from the first on, as they happen. The browser reconnects where it got no answer. A hidden
 * tab lets its stream go, since a browser has six connections for all tabs; shown again, it goes on after its last event.
 * @param insists asks again where the service refuses, as one does that stops
 */
export function useEvents(id: string, insists = true): Events {
  const cache = useQueryClient();
  const [events, setEvents] = useState(NONE);
  useEffect(() => {
    let stream: EventSource | null = null;
    let last = '';
    let retry = 0;
    let arrived: AgentEvent[] = [];
    let frame = 0;
    const show = (): void => {
      const more = arrived;
      arrived = [];
      frame = 0;
      setEvents(({ list }) => ({ ...NONE, list: [...list, ...more], isLive: true }));
      if (more.some(({ kind }) => kind === 'ConversationStateUpdateEvent')) {
        void askAgain(cache, { queryKey: ['conversation', id] });
      }
    };
    const take = ({ data, lastEventId }: MessageEvent<string>): void => {
      last = lastEventId;
      arrived.push(JSON.parse(data) as AgentEvent);
      // A long log arrives at once, and is drawn at once.
      frame ||= requestAnimationFrame(show);
    };
    const setLive = (isLive: boolean): void => setEvents(({ list }) => ({ ...NONE, list, isLive }));
    const open = (): void => {
      const opened = new EventSource(`${PATH_PREFIX}/api/v1/conversation/${id}/events/stream?last_event_id=${last}`);
      stream = opened;
      for (const kind of KINDS) {
        opened.addEventListener(kind, take);
      }
      opened.addEventListener('open', () => setLive(true));
      opened.addEventListener('error', () => {
        setLive(false);
        if (opened.readyState === EventSource.CLOSED) {
          // Refused, as by a service that stops; or the session has ended, which this request shows.
          void askAgain(cache, { queryKey: ['conversation', id] });
          if (insists) {
            retry = window.setTimeout(open, RETRY_MS);
          } else {
            setEvents(({ list }) => ({ ...NONE, list, isRefused: true }));
          }
        }
      });
    };
    const close = (): void => {
      stream?.close();
      stream = null;
      clearTimeout(retry);
    };
    const follow = (): void => {
      if (document.hidden) {
        close();
      } else if (stream === null) {
        open();
      }
    };
    follow();
    document.addEventListener('visibilitychange', follow);
    return () => {
      document.removeEventListener('visibilitychange', follow);
      close();
      cancelAnimationFrame(frame);
      setEvents(NONE);
    };
  }, [id, cache, insists]);
  return events;
}

/** An answer that is still being written; the event that it becomes has the same id. */
export type Draft = { id: string; text: string; reasoning: string };

type Frame = { type: string; item_id: string; kind?: 'text' | 'reasoning'; content?: string };

function draftsAfter(drafts: readonly Draft[], { type, item_id: id, kind = 'text', content = '' }: Frame) {
  switch (type) {
    case 'item_started':
      // The event of the one before may still be on its way.
      return [...drafts.filter((draft) => draft.id !== id).slice(-1), { id, text: '', reasoning: '' }];
    case 'delta':
      return drafts.map((draft) => (draft.id === id ? { ...draft, [kind]: draft[kind] + content } : draft));
    case 'item_aborted':
      return drafts.filter((draft) => draft.id !== id);
    default:
      return drafts;
  }
}

/** What the agent is writing and the events do not have yet, from its agent server; nothing where that is out of reach. */
export function useDrafts(conversation: Conversation, events: readonly AgentEvent[]): Draft[] {
  const { id, sandbox_id: sandbox, session_api_key: key } = conversation;
  const isWriting = conversation.sandbox_status === 'RUNNING' && conversation.execution_status === 'running';
  const [drafts, setDrafts] = useState<readonly Draft[]>([]);
  useEffect(() => {
    if (!isWriting || key === null) {
      return undefined;
    }
    const ended = new AbortController();
    const { signal } = ended;
    let retry = 0;
    const take = ({ data }: MessageEvent<string>): void =>
      setDrafts((before) => draftsAfter(before, JSON.parse(data) as Frame));
    const again = (): void => {
      setDrafts([]);
      retry = window.setTimeout(open, RETRY_MS);
    };
    const open = (): void => {
      const path = `${PATH_PREFIX}/api/v1/sandboxes/${sandbox}/agent-server/sockets/session/${id}?drafts=only`;
      const socket = new WebSocket(`${location.origin.replace('http', 'ws')}${path}`);
      socket.addEventListener('open', () => {
        socket.send(JSON.stringify({ type: 'auth', session_api_key: key }));
        signal.addEventListener('abort', () => socket.close());
        // Closed before it was open, it would complain in the browser's log.
        if (signal.aborted) {
          socket.close();
        }
      });
      socket.addEventListener('message', take, { signal });
      socket.addEventListener('close', again, { signal });
    };
    open();
    return () => {
      ended.abort();
      clearTimeout(retry);
      setDrafts([]);
    };
  }, [id, sandbox, key, isWriting]);
  return drafts.filter((draft) => events.every((event) => event.id !== draft.id));
}
