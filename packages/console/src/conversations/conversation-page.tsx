import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';
import { providerName, sessionQuery } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Callout, Elsewhere, Empty, Loaded } from '../ui/blocks.js';
import { isOpen, isOfUser, statusOf, stepsOf, textOf, useDrafts, useEvents } from './events.js';
import { Composer, Confirmation, Controls } from './controls.js';
import { causeQuery, type Conversation, conversationQuery, startQuery } from './conversation-queries.js';
import { Facts } from './facts.js';
import { MoreMenu } from './more-menu.js';
import { SharedConversation } from './shared-conversation.js';
import { taskOf } from './task-card.js';
import { DraftItem, isEnd, TimelineItem } from './timeline.js';
import { Workspace } from './workspace.js';

export function ConversationPage({ id }: { id: string }) {
  const conversation = useQuery(conversationQuery(id));
  const userId = useQuery(sessionQuery).data?.id;
  return (
    <Loaded query={conversation} name="the conversation">
      {(found) =>
        found === null ? (
          <Page title="Not found">
            <Empty title="There is no conversation of yours at this address.">
              <Link className="button primary" href="/conversations" children="All conversations" />
            </Empty>
          </Page>
        ) : found.created_by_user_id === userId ? (
          <Opened conversation={found} />
        ) : (
          <SharedConversation conversation={found} />
        )
      }
    </Loaded>
  );
}

/** A phone has room for one of them at a time. */
const VIEWS = ['Conversation', 'Changes', 'Details'] as const;
type View = (typeof VIEWS)[number];
const TAB = { type: 'button', role: 'tab', className: 'tab' } as const;

function Opened({ conversation: stored }: { conversation: Conversation }) {
  const events = useEvents(stored.id);
  const steps = useMemo(() => stepsOf(events.list), [events.list]);
  // The stream knows it first.
  const told = statusOf(events.list) as Conversation['execution_status'];
  const conversation = { ...stored, execution_status: told ?? stored.execution_status };
  const { execution_status: status, sandbox_status: sandbox, error } = conversation;
  const { selected_repository: repository, git_provider: provider } = conversation;
  const drafts = useDrafts(conversation, events.list);
  useRefreshAfterWork(stored.id, status);
  const [view, setView] = useState<View>('Conversation');
  const length = drafts.reduce((sum, draft) => sum + draft.text.length, steps.length);
  useFollowing(length, view === 'Conversation');
  const open =
    status === 'waiting_for_confirmation' ? 'waits for you' : status === 'running' ? 'running…' : 'not finished';
  const start = useQuery(startQuery(stored.id)).data;
  const task = useMemo(() => taskOf(start), [start]);
  const cause = useQuery(causeQuery(stored)).data;
  const first = steps.find(({ event }) => isOfUser(event))?.event;
  const message = task?.title ?? textOf(first?.llm_message?.content);
  const place = [provider && providerName(provider), repository].filter(Boolean).join(' · ');
  const writing = drafts.map((draft) => <DraftItem key={draft.id} {...draft} />);
  const lead = (
    <>
      {place}
      {task?.url && <Elsewhere href={task.url} text={task.name} />}
    </>
  );
  return (
    <Page
      title={conversation.title ?? 'Untitled conversation'}
      lead={lead}
      actions={<MoreMenu conversation={conversation} message={message} />}>
      <div className="phone-tabs tab-list" role="tablist" aria-label="Parts of the conversation">
        {VIEWS.map((name) => (
          <button key={name} {...TAB} aria-selected={view === name} onClick={() => setView(name)} children={name} />
        ))}
      </div>
      <div className="conversation" data-view={view}>
        <section className="talk" aria-label="Events">
          <div role="log" aria-label="Events">
            <ol className="timeline">
              {steps.map((step) => (
                <TimelineItem
                  key={step.event.id}
                  {...step}
                  open={isOpen(step) ? open : null}
                  sandbox={stored.sandbox_id}
                  {...(step.event === first && { task, cause })}
                />
              ))}
            </ol>
          </div>
          {drafts.length > 0 && <ol className="timeline" aria-label="Being written" children={writing} />}
          {!events.isLive && (
            <p className="hint" role="status">
              Connecting to the events…
            </p>
          )}
          {status === 'running' && sandbox === 'RUNNING' && (
            <p className="working" role="status">
              <span className="spinner" aria-hidden="true" /> The agent is working
            </p>
          )}
          {error !== null && !isEnd(events.list.findLast(({ kind }) => kind === 'ConversationErrorEvent')?.code) && (
            <Callout kind="error" title="The agent gave up" text={error.detail} />
          )}
          {status === 'waiting_for_confirmation' && <Confirmation conversation={stored} />}
          <Composer conversation={conversation} />
        </section>
        <aside aria-label="Workspace">
          <Controls conversation={conversation} />
          <Facts conversation={conversation} />
          <Workspace conversation={conversation} />
        </aside>
      </div>
    </Page>
  );
}

/** What the agent has changed is asked for again when it stops. */
function useRefreshAfterWork(id: string, status: string | null): void {
  const cache = useQueryClient();
  useEffect(() => {
    if (status !== 'running') {
      void cache.invalidateQueries({ queryKey: ['files', id] });
    }
  }, [cache, id, status]);
}

const NEAR_PX = 160;

/** Who reads the end sees what comes; who has scrolled back stays there. */
function useFollowing(length: number, isShown: boolean): void {
  const isAtEnd = useRef(true);
  useEffect(() => {
    const look = (): void => {
      const { scrollHeight } = document.documentElement;
      isAtEnd.current = window.scrollY + window.innerHeight >= scrollHeight - NEAR_PX;
    };
    window.addEventListener('scroll', look, { passive: true });
    return () => window.removeEventListener('scroll', look);
  }, []);
  useEffect(() => {
    if (isShown && isAtEnd.current && length > 0) {
      window.scrollTo({ top: document.documentElement.scrollHeight });
    }
  }, [length, isShown]);
}
