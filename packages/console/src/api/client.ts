import { type QueryClient, type QueryFilters, queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import createClient from 'openapi-fetch';
import type { components, paths } from '../../generated/schema.js';
import { PATH_PREFIX } from './path-prefix.js';

export type Schemas = components['schemas'];

/** What a refusal says besides its status; `errors` has members of its own for each code. */
interface Refusal {
  code?: string;
  detail?: string | Schemas['ValidationError'][];
  errors?: unknown[];
}

/** What the service said when it refused, in its own words; with status 0 where it said nothing. */
export class ProblemError extends Error {
  override name = 'ProblemError';

  constructor(
    readonly status: number,
    detail: string,
    readonly refusal: Refusal = {},
    options?: ErrorOptions,
  ) {
    super(detail, options);
  }
}

/** The session of the cookie; `onLost` is called when a request shows that it has ended. */
export const session = { csrfToken: '', signInUrl: null as string | null, onLost: (): void => undefined };

/** Proxies that sign people in answer 401 to who accepts JSON, and lead everything else to pages of another origin. */
export const api = createClient<paths>({ baseUrl: PATH_PREFIX, headers: { Accept: 'application/json, */*' } });

/** What a request names by the id in its path. */
export const at = (id: string) => ({ params: { path: { id } } });

/** What it says after the question mark of its address. */
export const by = <Q>(query: Q) => ({ params: { query } });

api.use({
  onRequest: ({ request }) => {
    if (request.method !== 'GET') {
      request.headers.set('X-CSRF-Token', session.csrfToken);
    }
    return request;
  },
});

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The body of an answer. @throws ProblemError for everything else */
export async function bodyOf<T>(call: Promise<Answer<T>>): Promise<T> {
  return (await answerOf(call)).body;
}

/** The same with the headers. */
export async function answerOf<T>(call: Promise<Answer<T>>): Promise<{ body: T; headers: Headers }> {
  const { data, error, response } = await call.catch((cause: unknown) => {
    throw new ProblemError(0, 'The service cannot be reached. Load the page again in a moment.', {}, { cause });
  });
  if (!response.ok) {
    const refusal = (error ?? {}) as Refusal;
    const { code, detail } = refusal;
    // What is wrong with members of a body comes as a list.
    const words = Array.isArray(detail)
      ? detail.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join(' ')
      : detail;
    // A key that is typed into a form may be wrong without the end of the session.
    if (code === 'unauthorized' && !new URL(response.url).pathname.startsWith(`${PATH_PREFIX}/auth/`)) {
      session.onLost();
    }
    const said = words ?? `The service answered ${response.status}. Load the page again.`;
    throw new ProblemError(response.status, said, refusal);
  }
  return { body: data as T, headers: response.headers };
}

/** A query for the body of an answer. */
export function bodyQuery<T>(queryKey: string[], call: () => Promise<Answer<T>>) {
  return queryOptions({ queryKey, queryFn: () => bodyOf(call()) });
}

const POLL_MS = 500;
const START_TRIES = 120;

/** Waits until a sandbox runs. @throws Error with the reason where it does not within a minute */
export async function runningSandbox(id: string): Promise<Schemas['SandboxInfo']> {
  for (let tries = 0; tries < START_TRIES; tries += 1) {
    const [sandbox] = await bodyOf(api.GET('/api/v1/sandboxes', by({ id: [id] })));
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
  throw new Error('The sandbox is taking long to start. Check again in a minute.');
}

/** The settings of the user; never refused, also before there are any. */
export const meQuery = bodyQuery(['me'], () => api.GET('/api/v1/users/me'));

export type Provider = Schemas['ProviderType'];

export const PROVIDER_NAMES: Record<Provider, string> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  bitbucket: 'Bitbucket',
  enterprise_sso: 'Enterprise SSO',
};

export function providerName(provider: string): string {
  return PROVIDER_NAMES[provider as Provider] ?? provider;
}

/** One whose session has ended comes back to the page as it was. */
async function readSession(): Promise<(Schemas['SessionUser'] & { hasEnded?: boolean }) | null> {
  const { user, csrf_token: token, sign_in_url: signInUrl } = await bodyOf(api.GET('/auth/session'));
  session.csrfToken = token ?? '';
  session.signInUrl = signInUrl;
  return user;
}

/** Who is signed in; null is an answer, not an error. */
export const sessionQuery = queryOptions({ queryKey: ['session'], queryFn: readSession, staleTime: Infinity });

/** Whether the session may do this: viewers, and keys without the scope, are refused. */
export function useMay(scope: Schemas['Scope']): boolean {
  return useQuery(sessionQuery).data?.scopes.includes(scope) === true;
}

/** Asks for it again from the start: what was asked for the first time may arrive later, and tells what was so before. */
export async function askAgain(cache: QueryClient, which: QueryFilters): Promise<void> {
  await cache.cancelQueries(which);
  await cache.invalidateQueries(which);
}

/** Makes a request that begins or ends the session, and then shows the page of the user who is signed in. */
export function useSessionChange(): (request: () => Promise<unknown>) => Promise<void> {
  const cache = useQueryClient();
  return async (request) => {
    await request();
    const user = await readSession();
    if (user?.id !== cache.getQueryData(sessionQuery.queryKey)?.id) {
      // What one user has seen on this page must not be there for the next.
      cache.removeQueries({ predicate: ({ queryKey: [name] }) => name !== 'session' });
    }
    cache.setQueryData(sessionQuery.queryKey, user);
  };
}

/** Signs in by the code of a one-time link, which the address bar and the history do not keep; returns why it fails. */
export async function signInByLink(): Promise<string | null> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) {
    return null;
  }
  history.replaceState(null, '', location.pathname);
  const sent = bodyOf(api.POST('/auth/code', { body: { code } })).then(() => null);
  return await sent.catch((error: Error) => error.message);
}
