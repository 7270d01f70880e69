import { Link } from 'wouter';
import { api, bodyOf, by, providerName } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Ago, Badge, Elsewhere, Empty, Row, Rows, usePages } from '../ui/blocks.js';
import { type Conversation, stateOf } from './conversation-queries.js';
import { NewConversation } from './new-conversation.js';

const REFRESH_MS = 10_000;

export function ConversationsPage() {
  const { query, older } = usePages({
    queryKey: ['conversations'],
    load: (page) => bodyOf(api.GET('/api/v1/app-conversations/search', by({ limit: 50, ...page }))),
    refetchInterval: REFRESH_MS,
  });
  const empty = (
    <Empty title="No conversations yet">
      <p>Start a task on the page Work, or tell an agent in your own words what to do.</p>
      <Link className="button primary" href="/" children="See your work" />
    </Empty>
  );
  return (
    <Page title="Conversations">
      <NewConversation />
      <Rows query={query} name="conversations" empty={empty}>
        {(conversation) => <ConversationRow key={conversation.id} conversation={conversation} />}
      </Rows>
      {older}
    </Page>
  );
}

function ConversationRow({ conversation }: { conversation: Conversation }) {
  const { id, title, selected_repository: repository, git_provider: provider, pull_requests: pulls } = conversation;
  const facts = [
    provider && <span className={`host ${provider}`}>{providerName(provider)}</span>,
    repository,
    ...pulls.map(({ number, url }) => <Elsewhere href={url} text={`Pull request ${number}`} />),
    <Ago time={conversation.updated_at} />,
  ];
  return (
    <Row title={title ?? 'Untitled conversation'} href={`/conversations/${id}`} facts={facts}>
      <Badge state={stateOf(conversation)} />
    </Row>
  );
}
