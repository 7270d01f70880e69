import { queryOptions } from '@tanstack/react-query';
import { parseList, Token } from 'structured-headers';
import { answerOf, api, by, ProblemError, providerName, type Schemas } from '../api/client.js';
import { duration } from '../ui/blocks.js';

export type Task = Schemas['LinkedTask'];
export type Kind = Task['task_type'];

/** Ordered by urgency. */
export const KINDS: Record<Kind, string> = {
  MERGE_CONFLICTS: 'Merge conflicts',
  FAILING_CHECKS: 'Failing checks',
  UNRESOLVED_COMMENTS: 'Unresolved comments',
  OPEN_ISSUE: 'Open issues',
  OPEN_PR: 'Open pull requests',
  CREATE_MICROAGENT: 'Agent instructions',
};

const MOST = 100;

export const tasksQuery = queryOptions({
  queryKey: ['suggested-tasks'],
  queryFn: async () => {
    const { body, headers } = await answerOf(api.GET('/api/v1/git/suggested-tasks/search', by({ limit: MOST })));
    return { tasks: body.items, hosts: hostStatuses(headers.get('X-Provider-Status') ?? '') };
  },
  staleTime: 60_000,
});

/** How a host took part, as members of the header and of a refusal. */
export type HostStatus = { provider: string; state: string } & Record<
  'code' | 'detail' | 'retry_after' | 'age' | 'truncated',
  string
>;

function hostStatuses(header: string): HostStatus[] {
  return parseList(header).map(([provider, parameters]) => {
    const text = (name: string): string => wordsOf(parameters.get(name));
    return statusOf(wordsOf(provider), text('status'), text);
  });
}

/** Statuses of the hosts that a refusal names; empty for other errors. */
export function refusingHosts(error: Error | null): HostStatus[] {
  const errors = error instanceof ProblemError && error.refusal.code === 'git_providers_failed' && error.refusal.errors;
  return (errors || []).map((each) => {
    const members = each as Record<string, unknown>;
    return statusOf(wordsOf(members['provider']), 'error', (name) => wordsOf(members[name]));
  });
}

function statusOf(provider: string, state: string, text: (name: string) => string): HostStatus {
  const [code, detail] = [text('code'), text('detail')];
  return {
    provider,
    state,
    code,
    detail,
    retry_after: text('retry_after'),
    age: text('age'),
    truncated: text('truncated'),
  };
}

function wordsOf(value: unknown): string {
  return value instanceof Token || typeof value === 'string' || typeof value === 'number' ? value.toString() : '';
}

const UNREACHED = ['unavailable', 'timeout'];
const AGAIN = 'Connect it again in Settings.';
const LATER = 'Try again in a minute.';

/** Why a host shows nothing, or not all, and what to do about it. */
const REASONS: Record<string, [reason: string, advice: string]> = {
  unauthorized: ['it refuses the token', AGAIN],
  reauth_required: ['it refuses the token', AGAIN],
  not_linked: ['your account is not linked to it', 'Sign in to it once through your organization, then connect it.'],
  insufficient_scope: ['the token may not read everything', 'Connect one with more rights in Settings.'],
  sso_required: ['an organization asks for single sign-on', 'Authorize the token for the organization on the host.'],
  blocked_by_policy: ['a policy of an organization blocks the token', 'Ask an owner of the organization.'],
  rate_limited: ['it takes no more requests for now', LATER],
  query_too_large: ['it has too much to read at once', 'The most recent work is shown.'],
  unsupported: ['its version cannot tell everything', 'The rest is shown.'],
  unavailable: ['it cannot be reached', LATER],
  timeout: ['it does not answer in time', LATER],
};

/** "It cannot be reached. Try again in a minute."; empty where a host takes part in full. */
export function reasonOf(status: HostStatus, isVerified = true): string {
  const { provider, state, code, detail, retry_after: wait, age, truncated } = status;
  const [reason, advice] = REASONS[code] ?? [code.replaceAll('_', ' '), ''];
  const why =
    !isVerified && (UNREACHED.includes(code) || state === 'stale')
      ? `not verified: could not reach ${providerName(provider)}`
      : reason;
  const said = [why, detail && `(${detail})`].filter(Boolean).join(' ');
  return [
    said && `${said}.`,
    wait === '' ? advice : `Try again in ${duration(Number(wait))}.`,
    age && `Read ${duration(Number(age))} ago.`,
    truncated && 'Only the most recent repositories.',
  ]
    .filter(Boolean)
    .join(' ');
}
