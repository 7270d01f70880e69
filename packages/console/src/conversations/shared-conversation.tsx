import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, bodyOf } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Badge, Button, Loaded } from '../ui/blocks.js';
import { type Conversation, stateOf, STATES } from './conversation-queries.js';
import { type AgentEvent, isOpen, stepsOf, useEvents } from './events.js';
import { TimelineItem } from './timeline.js';

const BUSY_MS = 3_000;

/** A conversation of another user: as it happens where the service lets readers follow it, else as it is stored. */
export function SharedConversation({ conversation }: { conversation: Conversation }) {
  const { id, title, created_by_email: owner, visibility, execution_status: agent } = conversation;
  const live = useEvents(id, false);
  const stored = useInfiniteQuery({
    queryKey: ['shared', id],
    queryFn: async ({ pageParam }) => {
      const page = pageParam === '' ? {} : { page_id: pageParam };
      const params = { path: { id }, query: { ...page, limit: 100 } };
      return bodyOf(api.GET('/api/v1/conversation/{id}/events/search', { params }));
    },
    initialPageParam: '',
    getNextPageParam: ({ next_page_id: next }) => next,
    enabled: live.isRefused,
    refetchInterval: agent === 'running' ? BUSY_MS : false,
    select: ({ pages }) => pages.flatMap(({ items }): AgentEvent[] => items),
  });
  const why =
    visibility === 'organization' ? 'which is shared with the organization' : 'which you may read as administrator';
  return (
    <Page
      title={title ?? 'Untitled conversation'}
      lead={`A conversation of ${owner ?? 'another user'}, ${why}.`}
      actions={<Badge state={STATES[stateOf(conversation)]} />}>
      {!live.isRefused && (live.isLive || live.list.length > 0) ? (
        <Log events={live.list} conversation={conversation} />
      ) : (
        <Loaded query={stored} name="the events">
          {(events) => <Log events={events} conversation={conversation} />}
        </Loaded>
      )}
      {live.isRefused && stored.hasNextPage && (
        <Button isBusy={stored.isFetchingNextPage} onClick={() => void stored.fetchNextPage()} text="More events" />
      )}
    </Page>
  );
}

function Log({ events, conversation }: { events: readonly AgentEvent[]; conversation: Conversation }) {
  const { execution_status: agent } = conversation;
  const steps = useMemo(() => stepsOf(events), [events]);
  const open = agent === 'running' ? 'running…' : 'not finished';
  return (
    <div role="log" aria-label="Events">
      <ol className="timeline">
        {steps.map((step) => (
          <TimelineItem key={step.event.id} {...step} open={isOpen(step) ? open : null} sandbox={null} />
        ))}
      </ol>
    </div>
  );
}
