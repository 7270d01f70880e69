import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { api, bodyOf, by, PROVIDER_NAMES, type Provider, providerName, useMay } from '../api/client.js';
import { automationsQuery } from '../automations/automation-queries.js';
import { Page } from '../shell/layout.js';
import { Ago, Badge, Button, Elsewhere, Empty, Row, Rows, usePages } from '../ui/blocks.js';
import { given, SelectField, TextField, useFilter } from '../ui/form.js';
import { type Conversation, recentQuery, type State, stateOf, STATES } from './conversation-queries.js';
import { FailedStarts } from './failed-starts.js';
import { NewConversation } from './new-conversation.js';

const REFRESH_MS = 10_000;
const ALL = { text: '', owner: '', state: '', repository: '', host: '', automation: '' };

const WHOSE = [
  ['', 'My own'],
  ['others', 'Shared with me'],
] as const;

export function ConversationsPage() {
  const [filter, bind, setFilter] = useFilter(ALL);
  const mayRun = useMay('run');
  const isFiltered = Object.values(filter).some((value) => value !== '');
  const { query, older } = usePages({
    queryKey: ['conversations', filter],
    load: (page) => {
      const chosen = given({
        title__contains: filter.text.trim(),
        state__eq: filter.state,
        selected_repository__eq: filter.repository,
        git_provider__eq: filter.host,
        automation_id__eq: filter.automation,
      }) as { state__eq?: State; git_provider__eq?: Provider };
      return bodyOf(
        api.GET(
          '/api/v1/app-conversations/search',
          by({ owner__eq: filter.owner === 'others' ? 'others' : 'me', limit: 50, ...page, ...chosen }),
        ),
      );
    },
    refetchInterval: REFRESH_MS,
  });
  const empty = isFiltered ? (
    <Empty title="No conversation matches the filter." />
  ) : (
    <Empty title="No conversations yet">
      {mayRun && <p>Start a task on the page Work, or tell an agent in your own words what to do.</p>}
      <div className="actions">
        {mayRun && <Link className="button primary" href="/" children="See your work" />}
        <Button onClick={() => setFilter({ ...ALL, owner: 'others' })} text="See what others share" />
      </div>
    </Empty>
  );
  return (
    <Page title="Conversations">
      {mayRun && <NewConversation />}
      {['', 'failed'].includes(filter.state) && <FailedStarts text={filter.text} />}
      {(isFiltered || query.data?.length !== 0) && <Filters bind={bind} />}
      <Rows query={query} name="conversations" empty={empty}>
        {(conversation) => (
          <ConversationRow key={conversation.id} conversation={conversation} isShared={filter.owner !== ''} />
        )}
      </Rows>
      {older}
    </Page>
  );
}

type Bind = ReturnType<typeof useFilter<typeof ALL>>[1];

function Filters({ bind }: { bind: Bind }) {
  const recent = useQuery(recentQuery).data?.items ?? [];
  const automations = (useQuery(automationsQuery).data ?? []).map(({ id, name }) => [id, name] as const);
  const names = new Set(recent.map(({ selected_repository: name }) => name ?? ''));
  const repositories = [...names].filter((name) => name !== '').map((name) => [name, name] as const);
  return (
    <form className="filters" aria-label="Filter" name="filter">
      <TextField label="Search" type="search" placeholder="Part of the title" {...bind('text')} />
      <SelectField label="Whose" options={WHOSE} {...bind('owner')} />
      <SelectField label="State" options={[['', 'All states'], ...Object.entries(STATES)]} {...bind('state')} />
      <SelectField label="Works in" options={[['', 'All repositories'], ...repositories]} {...bind('repository')} />
      <SelectField label="Host" options={[['', 'All hosts'], ...Object.entries(PROVIDER_NAMES)]} {...bind('host')} />
      {automations.length > 0 && (
        <SelectField label="Automation" options={[['', 'All'], ...automations]} {...bind('automation')} />
      )}
    </form>
  );
}

function ConversationRow({ conversation, isShared }: { conversation: Conversation; isShared: boolean }) {
  const { created_by_email: owner } = conversation;
  const { id, title, selected_repository: repository, git_provider: provider, pull_requests: pulls } = conversation;
  const facts = [
    provider && <span className={`host ${provider}`}>{providerName(provider)}</span>,
    repository,
    isShared && owner,
    ...pulls.map(({ number, url }) => <Elsewhere href={url} text={`Pull request #${number}`} />),
    <Ago time={conversation.updated_at} />,
  ];
  return (
    <Row title={title ?? 'Untitled conversation'} href={`/conversations/${id}`} facts={facts}>
      <Badge state={STATES[stateOf(conversation)]} />
    </Row>
  );
}
