import { Link } from 'wouter';
import { api, bodyOf, by, providerName } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { CheckField, type Fields, Form, given, TextArea, TextField } from '../ui/form.js';
import { Ago, Badge, Elsewhere, Empty, Row, Rows, usePages } from '../ui/blocks.js';
import { choiceOf, FOLLOW, ModelAndAgent, StartProgress, useStart } from '../work/start.js';
import { type Conversation, stateOf } from './conversation-queries.js';

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

/** In the user's own words, with or without a repository. */
function NewConversation() {
  const start = useStart();
  const send = async (field: Fields) => {
    const repository = given({ selected_repository: field('repository') });
    const content = [{ text: field('message') }];
    start.begin({ initial_message: { content, run: true }, ...repository, ...choiceOf(field) });
  };
  return (
    <details className="panel">
      <summary>New conversation</summary>
      <Form name="New conversation" submit="Start conversation" onSubmit={send} keeps isBusy={start.isUnderWay}>
        <TextArea label="Message" rows={3} required placeholder="What is to be done?" />
        <div className="columns">
          <TextField label="Repository" placeholder="owner/name, or none" />
          <ModelAndAgent />
        </div>
        <CheckField {...FOLLOW} />
      </Form>
      <StartProgress start={start} />
    </details>
  );
}
