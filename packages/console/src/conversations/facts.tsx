import type { ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, type Schemas } from '../api/client.js';
import { Badge, dollars, Elsewhere, Pairs, wordOf } from '../ui/blocks.js';
import { CheckField, type Fields, Form, given, TextArea, TextField } from '../ui/form.js';
import { changesQuery, type Conversation, portsQuery, sandboxQuery } from './conversation-queries.js';

const count = new Intl.NumberFormat('en');

/** What it works on, what it has cost, and what came of it. */
export function Facts({ conversation }: { conversation: Conversation }) {
  const { id, metrics, llm_model: model, branch, selected_branch: base, pull_requests: pulls } = conversation;
  const { sandbox_id: sandboxId, sandbox_status: status, selected_repository: repository } = conversation;
  const usage = metrics?.accumulated_token_usage;
  const isRunning = status === 'RUNNING';
  const sandbox = useQuery({ ...sandboxQuery(sandboxId), enabled: status !== 'MISSING' });
  const why = isRunning || status === 'MISSING' ? null : sandbox.data?.status_detail;
  const ports = useQuery({ ...portsQuery(sandboxId), enabled: isRunning }).data ?? [];
  const facts = {
    Sandbox: isRunning ? null : [sentence(wordOf(status)), why].filter(Boolean).join(': '),
    Model: model,
    Branch: branch ?? base,
    Cost: costOf(
      metrics?.accumulated_cost ?? 0,
      (usage?.prompt_tokens ?? 0) + (usage?.completion_tokens ?? 0),
      metrics?.cost_source,
    ),
    Tokens: `${count.format(usage?.prompt_tokens ?? 0)} in, ${count.format(usage?.completion_tokens ?? 0)} out`,
    'Pull requests': linksTo(pulls.map(({ url, number, title }) => [url, `#${number} ${title}`])),
    Follows: conversation.follow ? <Following follow={conversation.follow} /> : null,
    Ports: isRunning && ports.length > 0 ? ports.map((port) => <Port key={port.name} port={port} />) : null,
  };
  return (
    <section className="panel facts-panel" aria-label="Facts">
      <Pairs className="facts" of={facts} />
      {repository !== null && pulls.length === 0 && (isRunning || status === 'PAUSED' || status === 'ERROR') && (
        <OpenPullRequest id={id} status={status} />
      )}
    </section>
  );
}

/** No cost for many tokens: the price of the model is unknown, unless its provider says that it is nothing. */
function costOf(cost: number, tokens: number, source?: Schemas['MetricsSnapshot']['cost_source']): string {
  if (source === 'provider') {
    return `${dollars.format(cost)}, as the provider says`;
  }
  return cost === 0 && tokens > 0
    ? `unknown (${count.format(tokens)} tokens)`
    : `${dollars.format(cost)}${source === 'catalogue' ? ' (estimate)' : ''}`;
}

function Following({ follow: { state, round, reason, pull_request: pull } }: { follow: Schemas['Follow'] }) {
  return (
    <>
      <Badge state={state} />
      {pull?.url && <Elsewhere href={pull.url} text={`#${pull.number}`} />}
      <span>{[round > 0 && `round ${round}`, reason].filter(Boolean).join(': ')}</span>
    </>
  );
}

/** The page behind the link says whether something listens if the agent server does not. */
function Port({ port: { name, url, listening } }: { port: Schemas['SandboxPort'] }) {
  const text = name.toLowerCase().replaceAll('_', ' ');
  return listening === false ? <span>{`${text}: nothing listens yet`}</span> : <Elsewhere href={url} text={text} />;
}

function linksTo(links: [url: string, text: string][]): ReactNode {
  return links.length === 0 ? null : links.map(([url, text]) => <Elsewhere key={url} href={url} text={text} />);
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/** Changes of a sandbox that does not run may not have been kept. */
function OpenPullRequest({ id, status }: { id: string; status: string }) {
  const { data: changes } = useQuery(changesQuery(id, status));
  const open = async (field: Fields) => {
    const body = {
      ...given({ title: field('title'), body: field('description'), target_branch: field('into branch') }),
      draft: field('draft') !== '',
    };
    await bodyOf(api.POST('/api/v1/app-conversations/{id}/pull-request', { ...at(id), body }));
  };
  if (changes === undefined || changes?.length === 0) {
    return changes && <p className="hint">No changes yet, so there is nothing to open a pull request for.</p>;
  }
  return (
    <Form name="Pull request" submit="Open pull request" onSubmit={open}>
      {status !== 'RUNNING' && <p className="hint">The sandbox does not run; this starts it.</p>}
      <p className="hint">Where you may not push, it comes from a fork of yours.</p>
      <details>
        <summary>Title, description, branch</summary>
        <TextField label="Title" hint="By default that of the conversation" />
        <TextArea label="Description" rows={3} />
        <TextField label="Into branch" hint="By default that of the repository" />
        <CheckField label="As a draft" name="draft" />
      </details>
    </Form>
  );
}
