import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useLocation } from 'wouter';
import { Callout } from '../ui/blocks.js';
import { api, bodyOf, type Schemas } from '../api/client.js';

const STEPS: [StartTask['status'], string][] = [
  ['WORKING', 'Accepted'],
  ['WAITING_FOR_SANDBOX', 'Sandbox'],
  ['PREPARING_REPOSITORY', 'Repository'],
  ['RUNNING_SETUP_SCRIPT', 'Setup script'],
  ['SETTING_UP_GIT_HOOKS', 'Git hooks'],
  ['STARTING_CONVERSATION', 'Conversation'],
  ['READY', 'Ready'],
];

/** The steps of a start: which are done, which is under way, and why it stopped. */
export function StartProgress({ start: { task, problem, isUnderWay } }: { start: Start }) {
  if (problem !== null) {
    return <Callout kind="error" title="The start failed" text={problem} />;
  }
  const current = STEPS.findIndex(([status]) => status === task?.status);
  return isUnderWay ? (
    <div className="progress">
      <ol className="steps" aria-label="Progress of the start">
        {STEPS.map(([status, name], index) => (
          <li
            key={status}
            className={index < current ? 'past' : index === current ? 'current' : ''}
            aria-current={index === current ? 'step' : undefined}>
            {name}
          </li>
        ))}
      </ol>
      <p role="status" className="hint">
        {task?.detail ?? `${STEPS[Math.max(current, 0)]?.[1]}…`}
      </p>
    </div>
  ) : null;
}

type StartRequest = Schemas['AppConversationStartRequest'];
export type StartTask = Schemas['AppConversationStartTask'];

const POLL_MS = 400;

export interface Start {
  begin: (request: StartRequest) => void;
  isUnderWay: boolean;
  /** Once the service has taken it. */
  task: StartTask | null;
  /** Why it has failed. */
  problem: string | null;
}

/** Starts a conversation, follows its steps, and opens it when it is ready. */
export function useStart(): Start {
  const [, navigate] = useLocation();
  const begun = useMutation({
    mutationFn: (body: StartRequest) => bodyOf(api.POST('/api/v1/app-conversations', { body })),
    meta: { showsErrors: true },
  });
  const id = begun.data?.id ?? '';
  const followed = useQuery({
    queryKey: ['start-task', id],
    queryFn: async () => {
      const params = { query: { ids: [id] } };
      const [task] = await bodyOf(api.GET('/api/v1/app-conversations/start-tasks', { params }));
      return task ?? null;
    },
    enabled: id !== '',
    refetchInterval: ({ state: { data } }) => (data?.status === 'READY' || data?.status === 'ERROR' ? false : POLL_MS),
  });
  const task = followed.data ?? begun.data ?? null;
  useEffect(() => {
    if (task?.status === 'READY' && task.app_conversation_id !== null) {
      navigate(`/conversations/${task.app_conversation_id}`);
    }
  }, [task, navigate]);
  const refusal = task?.status === 'ERROR' ? (task.detail ?? 'The service gave no reason. Try again.') : null;
  const problem = begun.error?.message ?? followed.error?.message ?? refusal;
  const isUnderWay = problem === null && (begun.isPending || task !== null);
  return { begin: begun.mutate, isUnderWay, task, problem };
}
