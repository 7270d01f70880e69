import { useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, bodyOf } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Button, Loaded } from '../ui/blocks.js';
import type { Conversation } from './conversation-queries.js';
import { type AgentEvent, isOpen, stepsOf } from './events.js';
import { TimelineItem } from './timeline.js';

/** A conversation of another user, as it is stored: only its owner gets the stream. */
export function SharedConversation({ conversation }: { conversation: Conversation }) {
  const { id, title, created_by_email: owner, visibility, sandbox_id: sandbox } = conversation;
  const events = useInfiniteQuery({
    queryKey: ['shared', id],
    queryFn: async ({ pageParam }) => {
      const page = pageParam === '' ? {} : { page_id: pageParam };
      const params = { path: { id }, query: { ...page, limit: 100 } };
      return bodyOf(api.GET('/api/v1/conversation/{id}/events/search', { params }));
    },
    initialPageParam: '',
    getNextPageParam: ({ next_page_id: next }) => next,
  });
  const steps = useMemo(
    () => stepsOf((events.data?.pages ?? []).flatMap(({ items }) => items as unknown as AgentEvent[])),
    [events.data],
  );
  const why =
    visibility === 'organization' ? 'which is shared with the organization' : 'which you may read as administrator';
  return (
    <Page title={title ?? 'Untitled conversation'} lead={`A conversation of ${owner ?? 'another user'}, ${why}.`}>
      <Loaded query={events} name="the events">
        {() => (
          <div role="log" aria-label="Events">
            <ol className="timeline">
              {steps.map((step) => (
                <TimelineItem
                  key={step.event.id}
                  {...step}
                  open={isOpen(step) ? 'not finished' : null}
                  sandbox={sandbox}
                />
              ))}
            </ol>
            {events.hasNextPage && (
              <Button
                isBusy={events.isFetchingNextPage}
                onClick={() => void events.fetchNextPage()}
                text="More events"
              />
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}
