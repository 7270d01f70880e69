import createClient from 'openapi-fetch';
import type { components, paths } from '../../generated/schema.js';

export type Schemas = components['schemas'];

/** What the service said when it refused, in its own words. */
export class ProblemError extends Error {
  /** 0: nothing was answered. */
  readonly status: number;

  constructor(status: number, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.name = 'ProblemError';
    this.status = status;
  }
}

/** Of the session that the cookie stands for; `onLost` is called when a request shows that it has ended. */
export const session = { csrfToken: '', onLost: (): void => undefined };

export const api = createClient<paths>();

api.use({
  onRequest: ({ request }) => {
    if (request.method !== 'GET') {
      request.headers.set('X-CSRF-Token', session.csrfToken);
    }
    return request;
  },
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * The body of an answer.
 *
 * @throws ProblemError for everything else
 */
export async function bodyOf<T>(call: Promise<Answer<T>>): Promise<T> {
  return (await answerOf(call)).body;
}

/** The same with the headers. */
export async function answerOf<T>(call: Promise<Answer<T>>): Promise<{ body: T; headers: Headers }> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw new ProblemError(0, 'The service cannot be reached. Try again in a moment.', { cause });
  });
  if (!response.ok) {
    const { code, detail } = (error ?? {}) as Partial<Schemas['Problem']>;
    if (code === 'unauthorized') {
      session.onLost();
    }
    throw new ProblemError(response.status, detail ?? `The service answered ${response.status}. Try again.`);
  }
  return { body: data as T, headers: response.headers };
}

const POLL_MS = 500;
const START_TRIES = 120;

/** Waits until a sandbox runs. @throws Error with the reason where it does not within a minute */
export async function runningSandbox(id: string): Promise<Schemas['SandboxInfo']> {
  for (let tries = 0; tries < START_TRIES; tries += 1) {
    const [sandbox] = await bodyOf(api.GET('/api/v1/sandboxes', { params: { query: { id: [id] } } }));
    if (sandbox?.status === 'RUNNING') {
      return sandbox;
    }
    if (sandbox?.status === 'ERROR') {
      throw new Error(sandbox.status_detail ?? 'The sandbox did not start.');
    }
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
    });
  }
  throw new Error('The sandbox takes long to start. Look again in a minute.');
}
