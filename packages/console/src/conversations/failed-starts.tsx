import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, bodyOf, by, type Schemas } from '../api/client.js';
import { Ago, Badge, Button, Row } from '../ui/blocks.js';
import { StartProgress, useStart } from '../work/start.js';
import { STATES } from './conversation-queries.js';

type Start = Schemas['AppConversationStartTask'];

const ENDED = ['READY', 'ERROR'];
const BUSY_MS = 2_000;
const REFRESH_MS = 10_000;
const MOST = 100;

const failedQuery = queryOptions({
  queryKey: ['starts'],
  queryFn: async () =>
    (await bodyOf(api.GET('/api/v1/app-conversations/start-tasks/search', by({ limit: MOST })))).items,
  refetchInterval: ({ state: { data } }) =>
    data?.every(({ status }) => ENDED.includes(status)) === false ? BUSY_MS : REFRESH_MS,
  select: failedStarts,
});

/** The newest start of each wish that came to nothing so far; one that is tried again stays in its place meanwhile. */
function failedStarts(newestFirst: Start[]): Start[] {
  const tries = [...Map.groupBy(newestFirst, wishOf).values()];
  return tries.flatMap((starts) =>
    starts.find(({ status }) => ENDED.includes(status))?.status === 'ERROR' ? starts.slice(0, 1) : [],
  );
}

const wishOf = (start: Start): string => JSON.stringify(bodyOfStart(start));

const WISHES = [
  'title',
  'selected_repository',
  'selected_branch',
  'git_provider',
  'llm_model',
  'llm_profile',
  'agent',
  'system_message_suffix',
  'secret_names',
  'git',
  'egress',
  'follow',
  'result_schema',
] as const;

/** What the same start is asked for with. */
function bodyOfStart({ request }: Start): Schemas['AppConversationStartRequest'] {
  const { initial_message: message, suggested_task: task } = request;
  const body = {
    // A task makes the message.
    ...(task === null ? { initial_message: message } : { suggested_task: task }),
    ...Object.fromEntries(WISHES.map((name) => [name, request[name]])),
  };
  return body as Schemas['AppConversationStartRequest'];
}

/** Starts that came to nothing, with the reason; they are no conversations. */
export function FailedStarts({ text }: { text: string }) {
  const failed = (useQuery(failedQuery).data ?? []).filter((start) =>
    titleOf(start).toLowerCase().includes(text.trim().toLowerCase()),
  );
  return failed.length === 0 ? null : (
    <section className="group" aria-label="Failed starts">
      <ul
        className="rows"
        children={failed.map((start) => (
          <FailedStart key={wishOf(start)} start={start} />
        ))}
      />
    </section>
  );
}

function titleOf({ request: { title, suggested_task: task, initial_message: message } }: Start): string {
  const { title: ofTask } = (task ?? {}) as { title?: string };
  const { content } = (message ?? {}) as { content?: { text?: string }[] };
  return title ?? ofTask ?? content?.[0]?.text?.split('\n')[0] ?? 'Untitled conversation';
}

function FailedStart({ start }: { start: Start }) {
  const again = useStart();
  const { detail, request, status, created_at: at } = start;
  const isFailed = status === 'ERROR';
  // They are shown masked, and cannot be sent again.
  const hasSecrets = Object.keys(request.secrets ?? {}).length > 0;
  return (
    <Row
      title={titleOf(start)}
      facts={[request.selected_repository, <Ago time={at} />, detail]}
      more={<StartProgress start={again} />}>
      <Badge state={isFailed ? STATES.failed : STATES.starting} />
      {!hasSecrets && (
        <Button
          isBusy={again.isUnderWay || !isFailed}
          onClick={() => again.begin(bodyOfStart(start))}
          text="Try again"
        />
      )}
    </Row>
  );
}
