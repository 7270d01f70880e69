import { queryOptions } from '@tanstack/react-query';
import { parseList, Token } from 'structured-headers';
import { answerOf, api, providerName, type Schemas } from '../api/client.js';
import { duration } from '../ui/blocks.js';

export type Task = Schemas['SuggestedTask'];
export type Kind = Task['task_type'];

/** In the order of their urgency. */
export const KINDS: Record<Kind, string> = {
  MERGE_CONFLICTS: 'Merge conflicts',
  FAILING_CHECKS: 'Failing checks',
  UNRESOLVED_COMMENTS: 'Unresolved comments',
  OPEN_ISSUE: 'Open issue',
  OPEN_PR: 'Open pull request',
  CREATE_MICROAGENT: 'Agent instructions',
};

export const tasksQuery = queryOptions({
  queryKey: ['suggested-tasks'],
  queryFn: async () => {
    const { body, headers } = await answerOf(api.GET('/api/user/suggested-tasks'));
    return { tasks: body, hosts: hostStatuses(headers.get('X-Provider-Status') ?? '') };
  },
  staleTime: 60_000,
});

const REFUSED = 'it refuses the token; connect it again';

export type HostStatus = ReturnType<typeof hostStatuses>[number];

/** "GitLab: rate limited, 41 s"; the reason is empty where a host takes part in full. */
function hostStatuses(header: string) {
  return parseList(header).map(([provider, parameters]) => {
    const text = (name: string): string => wordsOf(parameters.get(name));
    const code = text('code');
    const reason = [
      code === 'unauthorized' ? REFUSED : code.replaceAll('_', ' '),
      text('retry_after') && duration(Number(text('retry_after'))),
      text('age') && `read ${duration(Number(text('age')))} ago`,
      text('truncated') && 'only the most recent repositories',
      text('detail'),
    ];
    return {
      name: providerName(wordsOf(provider)),
      state: text('status'),
      reason: reason.filter((part) => part !== '').join(', '),
    };
  });
}

function wordsOf(value: unknown): string {
  return value instanceof Token || typeof value === 'string' || typeof value === 'number' ? value.toString() : '';
}
