import { queryOptions } from '@tanstack/react-query';
import { answerOf, api, bodyOf, bodyQuery, by, ProblemError, type Schemas } from '../api/client.js';

export type Conversation = Schemas['AppConversation'];

const BUSY_MS = 3_000;
const CALM_MS = 15_000;

/** What matters most: a sandbox that does not run says more than what its agent did last. */
export function stateOf({ sandbox_status: sandbox, execution_status: agent }: Conversation): string {
  return sandbox === 'RUNNING' || agent === 'finished' ? (agent ?? 'idle') : sandbox;
}

/** Null when there is none of the user with this id. */
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

export function sandboxQuery(id: string) {
  const queryFn = async () => (await bodyOf(api.GET('/api/v1/sandboxes', by({ id: [id] }))))[0] ?? null;
  return queryOptions({ queryKey: ['sandbox', id], queryFn });
}

/** Kept changes are others than those of a running sandbox. */
export function changesQuery(id: string, sandbox: string) {
  const params = { path: { id }, query: { path: '.', resume: false } };
  const call = () => bodyOf(api.GET('/api/v1/app-conversations/{id}/git/changes', { params }));
  return queryOptions({ queryKey: ['files', id, 'changes', sandbox], queryFn: () => call().catch(nullIfNotKept) });
}

/** Of a sandbox that does not run. @throws every other error */
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

export function filesQuery(id: string) {
  const params = { path: { id }, query: { path: '.' } };
  return bodyQuery(['files', id, 'list'], () => api.GET('/api/v1/app-conversations/{id}/files', { params }));
}

/** Null for what is no text. */
export function fileQuery(id: string, path: string) {
  const request = { params: { path: { id }, query: { file_path: path } }, parseAs: 'text' } as const;
  const queryFn = async () => {
    const { body, headers } = await answerOf(api.GET('/api/v1/app-conversations/{id}/file', request));
    const isText = headers.get('Content-Type')?.startsWith('application/json');
    return isText === true ? (JSON.parse(body) as string) : null;
  };
  return queryOptions({ queryKey: ['files', id, 'text', path], queryFn });
}
