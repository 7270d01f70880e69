import { setTimeout as wait } from 'node:timers/promises';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { EventSource } from '../../../support/event-source.js';
import type { SecretWatch } from './secret-watch.js';

/** An answer as it came. */
export interface ApiAnswer {
  status: number;
  body: unknown;
}

/** A start, a conversation, a sandbox: what the API answers, read member by member. */
export type Json = unknown;

const OVER = ['READY', 'ERROR'];
/** The machine may be busy, and what a killed process had is taken over after 20 s at the earliest. */
const PATIENCE_MS = 150_000;
/** Longer and longer: a question costs the service and its database as much as a step of what is waited for. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 500;
const LONGER = 1.25;

/** Speaks to the service as one user does, over HTTP alone. */
export class ApiClient {
  /**
   * @param url asked at each request: it changes when the service starts again
   * @param watch told of each response
   */
  constructor(
    private readonly url: () => string,
    readonly key: string,
    private readonly watch: Pick<SecretWatch, 'saw' | 'follows'>,
  ) {}

  /** The same user at another replica. */
  at(url: string): ApiClient {
    return new ApiClient(() => url, this.key, this.watch);
  }

  async send(
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer> {
    const response = await fetch(`${this.url()}${path}`, {
      method,
      headers: {
        'X-Session-API-Key': this.key,
        ...(body && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body && JSON.stringify(body),
    });
    const text = await response.text();
    this.watch.saw({ method, path, text });
    return { status: response.status, body: parse(text) };
  }

  async get(path: string): Promise<Json> {
    return this.must('GET', path);
  }

  async post(path: string, body: object = {}): Promise<Json> {
    return this.must('POST', path, body);
  }

  async remove(path: string): Promise<Json> {
    return this.must('DELETE', path);
  }

  async saveSettings(members: object): Promise<void> {
    await this.post('/api/settings', members);
  }

  /** @returns id of the start task */
  async start(body: object): Promise<string> {
    return text(await this.post('/api/v1/app-conversations', body), 'id');
  }

  async startTask(id: string): Promise<Json> {
    return first(await this.get(`/api/v1/app-conversations/start-tasks?ids=${id}`));
  }

  /** The task as soon as it is READY or ERROR. */
  async startTaskEnd(id: string): Promise<Json> {
    return this.once(
      () => this.startTask(id),
      (task) => OVER.includes(text(task, 'status')),
    );
  }

  /** Starts a conversation and waits until it is there. */
  async started(body: object): Promise<Started> {
    return this.ready(await this.start(body));
  }

  /** @throws Error with the task's detail when it failed */
  async ready(taskId: string): Promise<Started> {
    const task = await this.startTaskEnd(taskId);
    if (jsonText(task, 'status') !== 'READY') {
      throw new Error(`the start failed: ${jsonText(task, 'detail') ?? ''}`);
    }
    return { taskId, id: text(task, 'app_conversation_id'), sandboxId: text(task, 'sandbox_id') };
  }

  async conversation(id: string): Promise<Json> {
    return first(await this.get(`/api/v1/app-conversations?ids=${id}`));
  }

  /** The conversation as soon as the agent is in one of these statuses. */
  async conversationIn(id: string, ...statuses: string[]): Promise<Json> {
    return this.once(
      () => this.conversation(id),
      (conversation) => statuses.includes(jsonText(conversation, 'execution_status') ?? ''),
    );
  }

  async sandbox(id: string): Promise<Json> {
    return first(await this.get(`/api/v1/sandboxes?id=${id}`));
  }

  /** The sandbox as soon as it is in the status. */
  async sandboxIn(id: string, status: string): Promise<Json> {
    return this.once(
      () => this.sandbox(id),
      (sandbox) => (jsonText(sandbox, 'status') ?? 'MISSING') === status,
    );
  }

  async say(id: string, words: string): Promise<void> {
    const content = [{ type: 'text', text: words }];
    await this.post(`/api/v1/app-conversations/${id}/send-message`, { content });
  }

  /** All events that the service has stored, oldest first. */
  async events(id: string): Promise<Json[]> {
    const found: Json[] = [];
    let page: string | null = null;
    do {
      const query: string = page === null ? '' : `&page_id=${encodeURIComponent(page)}`;
      const answer = await this.get(`/api/v1/conversation/${id}/events/search?limit=100${query}`);
      found.push(...jsonList(answer, 'items'));
      page = jsonText(answer, 'next_page_id');
    } while (page !== null);
    return found;
  }

  async eventsOfKind(id: string, kind: string): Promise<Json[]> {
    return (await this.events(id)).filter((event) => jsonText(event, 'kind') === kind);
  }

  /** Waits until an event is stored that the condition takes. */
  async eventOf(id: string, condition: (event: Json) => boolean): Promise<Json> {
    const found = await this.once(
      async () => (await this.events(id)).find(condition) ?? null,
      (event) => event !== null,
    );
    return found;
  }

  async stream(id: string, lastEventId?: string): Promise<EventSource> {
    const path = `/api/v1/conversation/${id}/events/stream`;
    const source = await EventSource.connect(`${this.url()}${path}`, {
      'X-Session-API-Key': this.key,
      ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
    });
    this.watch.follows({ method: 'GET', path, text: () => JSON.stringify(source.events) });
    return source;
  }

  /** A request to the agent server of a running sandbox, passed through by the service. */
  async agentServer(sandboxId: string, method: string, path: string, body?: object): Promise<Json> {
    const key = text(await this.sandbox(sandboxId), 'session_api_key');
    const address = `/api/v1/sandboxes/${sandboxId}/agent-server${path}`;
    return this.must(method, address, body, { 'X-Session-API-Key': key });
  }

  /** Runs a command in the sandbox, as its agent's tools do. */
  async run(sandboxId: string, command: string): Promise<{ exitCode: number; output: string }> {
    const answer = await this.agentServer(sandboxId, 'POST', '/api/bash/execute_bash_command', { command });
    const output = `${jsonText(answer, 'stdout') ?? ''}${jsonText(answer, 'stderr') ?? ''}`;
    return { exitCode: Number(jsonAt(answer, 'exit_code')), output };
  }

  /**
   * Asks until the answer is the wanted one.
   *
   * @throws Error with the last answer when it never comes
   */
  async once(read: () => Promise<Json>, condition: (value: Json) => boolean): Promise<Json> {
    const deadline = Date.now() + PATIENCE_MS;
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      const value = await read();
      if (condition(value)) {
        return value;
      }
      if (Date.now() > deadline) {
        throw new Error(`waited in vain; the last answer was ${JSON.stringify(value)}`);
      }
      await wait(pause);
      pause = Math.min(pause * LONGER, MAX_PAUSE_MS);
    }
  }

  private async must(
    method: string,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<Json> {
    const answer = await this.send(method, path, body, headers);
    if (answer.status < 200 || answer.status > 299) {
      throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    }
    return answer.body;
  }
}

/** A conversation that is there. */
export interface Started {
  taskId: string;
  id: string;
  sandboxId: string;
}

/** A member that has to be a text. */
export function text(value: Json, ...path: string[]): string {
  const found = jsonText(value, ...path);
  if (found === null) {
    throw new Error(`no text at ${path.join('.')} of ${JSON.stringify(value)}`);
  }
  return found;
}

/** What two lists of events are compared by. */
export function idsOf(events: Json[]): string[] {
  return events.map((event) => text(event, 'id'));
}

function first(list: Json): Json {
  return Array.isArray(list) ? list[0] : null;
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
