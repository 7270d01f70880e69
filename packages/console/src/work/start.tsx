import { queryOptions, useMutation, useQuery } from '@tanstack/react-query';
import { type ComponentProps, useEffect } from 'react';
import { Link, useLocation } from 'wouter';
import { api, bodyOf, bodyQuery, by, meQuery, type Schemas } from '../api/client.js';
import { Callout } from '../ui/blocks.js';
import { type Fields, given, SelectField } from '../ui/form.js';

const OWN = 'CodeActAgent';

export const FORKS = Object.entries({ auto: 'Work in a fork of mine', never: 'Push nothing' });

export const FOLLOW = { label: 'Follow its pull request until it is green', name: 'follow' };

const agentsQuery = bodyQuery(['agents'], () => api.GET('/api/v1/config/agents'));
const profilesQuery = queryOptions({
  queryKey: ['profiles'],
  queryFn: async () => (await bodyOf(api.GET('/api/v1/settings/profiles'))).profiles,
});

/** The model and the agent of a start. What the settings name is preselected; one that is stored stays, offered or not. */
export function ModelAndAgent({ model = '', agent = '' }: { model?: string | null; agent?: string | null }) {
  const settings = useQuery(meQuery).data;
  const profiles = (useQuery(profilesQuery).data ?? []).map(({ name, model: of }) => [name, `${name}: ${of}`] as const);
  const models = new Map([[model ?? '', model ?? ''], ...profiles, ['', settings?.llm_model ?? 'No model yet']]);
  const isMissing = settings?.llm_model === null && models.size === 1;
  const hint = isMissing ? <Link href="/settings#model">Choose a model first</Link> : undefined;
  return (
    <>
      <SelectField label="Model" options={models} defaultValue={model ?? ''} hint={hint} />
      <AgentField preselected={settings?.agent} defaultValue={agent ?? ''} />
    </>
  );
}

type AgentProps = { preselected: string | null | undefined } & ComponentProps<'select'>;

/** The empty value stands for what is preselected. */
export function AgentField({ preselected: named, ...rest }: AgentProps) {
  const preselected = named ?? OWN;
  const agents = [...(useQuery(agentsQuery).data ?? [OWN]), String(rest.defaultValue || preselected)];
  const others = agents.filter((agent) => agent !== preselected).map((agent) => [agent, agentName(agent)] as const);
  return <SelectField label="Agent" options={new Map([['', agentName(preselected)], ...others])} {...rest} />;
}

function agentName(agent: string): string {
  return agent === OWN ? 'Slipway' : `${agent.replace(/^acp:/, '')} (ACP)`;
}

export function choiceOf(field: Fields) {
  const follow = field('follow') === '' ? {} : { follow: {} };
  return { ...given({ llm_profile: field('model'), agent: field('agent') }), ...follow };
}

const STEPS: [Schemas['AppConversationStartTask']['status'], string][] = [
  ['WORKING', 'Accepted'],
  ['WAITING_FOR_SANDBOX', 'Sandbox'],
  ['PREPARING_REPOSITORY', 'Repository'],
  ['RUNNING_SETUP_SCRIPT', 'Setup script'],
  ['SETTING_UP_GIT_HOOKS', 'Git hooks'],
  ['STARTING_CONVERSATION', 'Conversation'],
  ['READY', 'Ready'],
];

/** The steps of a start: which are done, which is under way, and why it stopped. */
export function StartProgress({ start: { task, problem, isUnderWay } }: { start: ReturnType<typeof useStart> }) {
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

const POLL_MS = 400;

/** Starts a conversation, follows its steps, and opens it when it is ready. */
export function useStart() {
  const [, navigate] = useLocation();
  const begun = useMutation({
    mutationFn: (body: Schemas['AppConversationStartRequest']) =>
      bodyOf(api.POST('/api/v1/app-conversations', { body })),
    meta: { showsErrors: true },
  });
  const id = begun.data?.id ?? '';
  const followed = useQuery({
    queryKey: ['start-task', id],
    queryFn: async () => (await bodyOf(api.GET('/api/v1/app-conversations/start-tasks', by({ ids: [id] }))))[0] ?? null,
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
