import { queryOptions, useQueryClient } from '@tanstack/react-query';
import { api, bodyOf, session } from './client.js';

/** Who is signed in; null is an answer, not an error. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async () => {
    const { user, csrf_token: token } = await bodyOf(api.GET('/auth/session'));
    session.csrfToken = token ?? '';
    return user;
  },
  staleTime: Infinity,
});

/** Makes a request that begins or ends the session, and shows the page of whoever it is then. */
export function useSessionChange(): (request: () => Promise<unknown>) => Promise<void> {
  const cache = useQueryClient();
  return async (request) => {
    await request();
    // What one user has seen on this page must not be there for the next.
    cache.removeQueries({ predicate: ({ queryKey: [name] }) => name !== 'session' });
    await cache.refetchQueries({ queryKey: sessionQuery.queryKey });
  };
}

/** Signs in by the code of a one-time link, which the address bar and the history do not keep; returns why it fails. */
export async function signInByLink(): Promise<string | null> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) {
    return null;
  }
  history.replaceState(null, '', location.pathname);
  const sent = bodyOf(api.POST('/auth/code', { body: { code } }));
  return await sent.then(
    () => null,
    (error: Error) => error.message,
  );
}
