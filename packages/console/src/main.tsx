import { MutationCache, onlineManager, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Router } from 'wouter';
import { ProblemError, session, sessionQuery, signInByLink } from './api/client.js';
import { PATH_PREFIX } from './api/path-prefix.js';
import { App } from './shell/app.js';
import { Notices, tell } from './ui/actions.js';

const BASE = `${PATH_PREFIX}/console`;

if (!location.pathname.startsWith(BASE)) {
  history.replaceState(null, '', `${BASE}/${location.hash}`);
}
const refusal = await signInByLink();

// A service on this machine answers without a network, too; one elsewhere fails at once, with words.
onlineManager.setEventListener(() => undefined);
const cache = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // A refusal stays one; only what did not arrive is asked again.
      retry: (count, error) => count < 2 && error instanceof ProblemError && error.status === 0,
    },
  },
  mutationCache: new MutationCache({
    onError: (error, _variables, _result, mutation) => {
      if (mutation.meta?.['showsErrors'] !== true) {
        tell('That did not work', error.message, 'error');
      }
    },
  }),
});
session.onLost = () => {
  const user = cache.getQueryData(sessionQuery.queryKey);
  if (user && !user.hasEnded) {
    tell('You were signed out', 'Your session has ended. Sign in again: what you typed is kept.', 'error');
    cache.setQueryData(sessionQuery.queryKey, () => ({ ...user, hasEnded: true }));
  }
};

const root = document.querySelector('#root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={cache}>
        <Router base={BASE}>
          <App refusal={refusal} />
          <Notices />
        </Router>
      </QueryClientProvider>
    </StrictMode>,
  );
}
