import { queryOptions } from '@tanstack/react-query';
import type { paths } from '../../generated/schema.js';
import { answerOf, api, at, bodyOf, bodyQuery, by, ProblemError, type Schemas } from '../api/client.js';

export type Conversation = Schemas['AppConversation'];

const BUSY_MS = 3_000;
const CALM_MS = 15_000;
const PORTS_MS = 5_000;

export type State = NonNullable<
  NonNullable<paths['/api/v1/app-conversations/search']['get']['parameters']['query']>['state__eq']
>;

/** The one word for each state, in all places. */
export const STATES: Record<State, string> = {
  starting: 'starting',
  running: 'running',
  waiting: 'waits for you',
  finished: 'finished',
  failed: 'failed',
  paused: 'paused',
  idle: 'idle',
  ended: 'ended',
};

const OF_AGENT: Record<string, State> = {
  running: 'running',
  waiting_for_confirmation: 'waiting',
  paused: 'paused',
  finished: 'finished',
};

/** The same as the service filters by: what the agent does counts while its sandbox runs. */
export function stateOf({ sandbox_status: sandbox, execution_status: agent, error }: Conversation): State {
  if (sandbox === 'MISSING') {
    return 'ended';
  }
  if (sandbox === 'ERROR' || error !== null || agent === 'error' || agent === 'stuck') {
    return 'failed';
  }
  return sandbox === 'RUNNING' ? (OF_AGENT[agent ?? ''] ?? 'idle') : sandbox === 'PAUSED' ? 'paused' : 'starting';
}

const RECENT = 50;

/** The conversations that were begun last: what they work on is offered first. */
export const recentQuery = bodyQuery(['recent'], () =>
  api.GET('/api/v1/app-conversations/search', by({ owner__eq: 'me', limit: RECENT })),
);

/** Returns null if the user may read no conversation with this id. */
export function conversationQuery(id: string) {
  return queryOptions({
    queryKey: ['conversation', id],
    queryFn: async () => {
      const found = await bodyOf(api.GET('/api/v1/app-conversations', by({ ids: [id] })));
      return (Array.isArray(found) ? found[0] : null) ?? null;
    },
    refetchInterval: ({ state: { data } }) =>
      data?.sandbox_status === 'STARTING' || data?.execution_status === 'running' ? BUSY_MS : CALM_MS,
  });
}

/** How it was started; null where that is not kept any more, or an agent server began it. */
export function startQuery(id: string) {
  const query = { conversation_id__eq: id, limit: 1 };
  const queryFn = async () => (await bodyOf(api.GET('/api/v1/app-conversations/start-tasks/search', by(query)))).items;
  return queryOptions({ queryKey: ['start', id], queryFn, staleTime: Infinity, select: ([start]) => start ?? null });
}

/** The most runs that the service lists at once. */
const RUNS = 100;

/** Which event began it; null where none did, or the run is not kept any more. */
export function causeQuery({ id, trigger, metadata }: Conversation) {
  const { automation_id: automation, automation_run_id: run } = metadata;
  const params = { path: { id: String(automation) }, query: { limit: RUNS } };
  return queryOptions({
    queryKey: ['cause', id],
    queryFn: async () => {
      const { runs } = await bodyOf(api.GET('/api/automation/v1/{id}/runs', { params }));
      return runs.find((each) => each.id === run)?.event ?? null;
    },
    enabled: trigger === 'automation' && typeof automation === 'string',
    staleTime: Infinity,
  });
}

export function sandboxQuery(id: string) {
  const queryFn = async () => (await bodyOf(api.GET('/api/v1/sandboxes', by({ id: [id] }))))[0] ?? null;
  return queryOptions({ queryKey: ['sandbox', id], queryFn });
}

/** Programs begin and end to listen at any time. */
export function portsQuery(id: string) {
  const call = () => api.GET('/api/v1/sandboxes/{id}/ports', at(id));
  return { ...bodyQuery(['ports', id], call), refetchInterval: PORTS_MS };
}

/** Reported by the proxy within seconds. */
export function requestsQuery(sandbox: string) {
  const call = () => api.GET('/api/v1/sandboxes/{id}/egress/log', at(sandbox));
  return { ...bodyQuery(['requests', sandbox], call), refetchInterval: PORTS_MS };
}

/** Kept changes are others than those of a running sandbox. */
export function changesQuery(id: string, sandbox: string) {
  const params = { path: { id }, query: { path: '.', resume: false } };
  const call = () => bodyOf(api.GET('/api/v1/app-conversations/{id}/git/changes', { params }));
  return queryOptions({ queryKey: ['files', id, 'changes', sandbox], queryFn: () => call().catch(nullIfNotKept) });
}

/** Returns null if the sandbox does not run. @throws every other error */
function nullIfNotKept(error: unknown): null {
  if (error instanceof ProblemError && [409, 410, 503].includes(error.status)) {
    return null;
  }
  throw error;
}

export function diffQuery(id: string, path: string) {
  const params = { path: { id }, query: { path, resume: false } };
  return bodyQuery(['files', id, 'diff', path], () => api.GET('/api/v1/app-conversations/{id}/git/diff', { params }));
}

/** Kept ones have the time at which they were; null where none were kept. */
export function filesQuery(id: string, sandbox: string) {
  const params = { path: { id }, query: { path: '.' } };
  const call = () => answerOf(api.GET('/api/v1/app-conversations/{id}/files', { params }));
  const queryFn = async () => {
    const answer = await call().catch(nullIfNotKept);
    const asOf = answer?.headers.get('Last-Modified');
    return answer && { paths: answer.body, asOf: asOf ? new Date(asOf).toISOString() : null };
  };
  return queryOptions({ queryKey: ['files', id, 'list', sandbox], queryFn });
}

/** Returns null for a file that is not text. */
export function fileQuery(id: string, path: string) {
  const request = { params: { path: { id }, query: { file_path: path } }, parseAs: 'text' } as const;
  const queryFn = async () => {
    const { body, headers } = await answerOf(api.GET('/api/v1/app-conversations/{id}/file', request));
    const isText = headers.get('Content-Type')?.startsWith('application/json');
    return isText === true ? (JSON.parse(body) as string) : null;
  };
  return queryOptions({ queryKey: ['files', id, 'text', path], queryFn });
}
