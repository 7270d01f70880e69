import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { until } from '../../../../test/support/until.js';

/** Shorter than the timeout of a test. */
const MAX_WAIT_MS = 50_000;
export const SESSION_KEY = 'session-key-of-a-test';

/** The model of `startRequest`, as an update of credentials names it. */
export const MODEL = { llm_model: 'openai/fake', llm_base_url: 'http://llm.example/v1' };
export const CREDENTIALS = { ...MODEL, llm_api_key: 'llm-key-of-a-test' };

export interface Answer {
  status: number;
  body: unknown;
}

export class AgentServerClient {
  readonly url: string;

  constructor(port: number) {
    this.url = `http://127.0.0.1:${port}`;
  }

  /** @param body sent as JSON; undefined: none */
  async send(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      signal: AbortSignal.timeout(MAX_WAIT_MS),
      headers: {
        'X-Session-API-Key': SESSION_KEY,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** Sends a request with the key, whatever its body and answer are. */
  async fetch(
    path: string,
    { headers = {}, ...init }: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> } = {},
  ): Promise<Response> {
    return await fetch(`${this.url}${path}`, {
      ...init,
      headers: { 'X-Session-API-Key': SESSION_KEY, ...headers },
    });
  }

  async get(path: string): Promise<unknown> {
    return (await this.send('GET', path)).body;
  }

  async post(path: string, body?: unknown): Promise<Answer> {
    return await this.send('POST', path, body);
  }

  async act(id: string, action: string, body?: unknown): Promise<Answer> {
    return await this.post(`/api/conversations/${id}/${action}`, body);
  }

  async info(id: string): Promise<unknown> {
    return await this.get(`/api/conversations/${id}`);
  }

  async start(members: Record<string, unknown> = {}): Promise<string> {
    const { body } = await this.post('/api/conversations', startRequest(members));
    const id = jsonText(body, 'id');
    if (id === null) {
      throw new Error(`no conversation was started: ${JSON.stringify(body)}`);
    }
    return id;
  }

  /** Sends a message; the agent takes it up unless `run` is false. */
  async say(id: string, text: string, run = true): Promise<Answer> {
    return await this.act(id, 'events', {
      role: 'user',
      content: [{ type: 'text', text }],
      run,
    });
  }

  /** Sends a message, and awaits how the agent's work on it ends. */
  async talk(id: string, text: string, status = 'finished'): Promise<void> {
    await this.say(id, text);
    await this.untilStatus(id, status);
  }

  async answerTo(id: string, text: string): Promise<unknown> {
    await this.talk(id, text);
    return (await this.answers(id)).at(-1);
  }

  async status(id: string): Promise<string | null> {
    return jsonText(await this.info(id), 'execution_status');
  }

  /** @throws Error that says where the conversation stands, before the test's own timeout hides it */
  async untilStatus(id: string, status: string): Promise<void> {
    const deadline = performance.now() + MAX_WAIT_MS;
    await until(async () => {
      const seen = [await this.status(id), await this.#lastUpdate(id)];
      if (performance.now() > deadline) {
        const events = (await this.events(id)).map((event) =>
          [jsonText(event, 'kind'), jsonText(event, 'code'), jsonText(event, 'detail')].join(' ').trim(),
        );
        throw new Error(`not ${status}, but ${JSON.stringify(seen)} with ${events.join(', ')}`);
      }
      return seen.every((one) => one === status);
    });
  }

  /** The log hears of a status a moment later. */
  async #lastUpdate(id: string): Promise<unknown> {
    const query = 'limit=100&kind=ConversationStateUpdateEvent&sort_order=TIMESTAMP_DESC';
    const updates = jsonList(await this.get(`/api/conversations/${id}/events/search?${query}`), 'items');
    const update = updates.find((event) => jsonAt(event, 'key') === 'execution_status');
    return jsonAt(update, 'value');
  }

  async events(id: string, query = ''): Promise<unknown[]> {
    return jsonList(await this.get(`/api/conversations/${id}/events/search?limit=100${query}`), 'items');
  }

  /** Kinds of a conversation's events, state updates left out. */
  async kinds(id: string): Promise<unknown[]> {
    const kinds = (await this.events(id)).map((event) => jsonAt(event, 'kind'));
    return kinds.filter((kind) => kind !== 'ConversationStateUpdateEvent');
  }

  async answers(id: string): Promise<unknown[]> {
    const events = await this.events(id, '&kind=MessageEvent&source=agent');
    return events.map((event) => jsonAt(jsonList(event, 'llm_message', 'content')[0], 'text'));
  }
}

export function startRequest(members: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    agent: {
      kind: 'Agent',
      llm: {
        model: 'openai/fake',
        api_key: 'llm-key-of-a-test',
        base_url: 'http://llm.example/v1',
        usage_id: 'agent',
      },
      tools: [{ name: 'terminal', params: {} }],
    },
    workspace: { kind: 'LocalWorkspace', working_dir: 'project' },
    ...members,
  };
}

/** Credentials that a client gives again after a restart, with a model at this address. */
export function credentialsWithModelAt(url: string): Record<string, unknown> {
  return { llm_model: 'openai/fake', llm_base_url: url, llm_api_key: 'llm-key-5519' };
}

/** A start with a model at this address, without the members of a model that clients add. */
export function startWithModelAt(url: string): Record<string, unknown> {
  return startRequest({
    agent: { kind: 'Agent', llm: { model: 'openai/fake', api_key: 'llm-key-5519', base_url: url } },
  });
}
