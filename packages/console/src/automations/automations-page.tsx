import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, at, bodyOf, useMay } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Ago, Badge, Button, dollars, duration, Elsewhere, Empty, Group } from '../ui/blocks.js';
import { Loaded, Row, Rows, Section } from '../ui/blocks.js';
import { ActionButton, Confirmed, tell, useAction, useSecretOnce } from '../ui/actions.js';
import { type Automation, automationQuery, automationsQuery, type Run, runsOf } from './automation-queries.js';
import {
  draftOf,
  sourceName,
  SOURCES,
  sourcesQuery,
  subjectText,
  templatesQuery,
  timesOf,
} from './automation-queries.js';
import { Editor } from './editor.js';
import { type Fields, Form, SelectField, TextField, useFilter } from '../ui/form.js';

const EXPLANATION = 'An automation starts agents by itself: on a schedule, or when a git host reports an event.';
const MOST_RUNS = 100;
const REFRESH_MS = 5_000;
const CAUSES = { cron: 'By its schedule', event: 'By an event', manual: 'By hand' };

export function AutomationsPage() {
  const make = useMay('settings') && (
    <Link className="button primary" href="/automations/new" children="New automation" />
  );
  const empty = <Empty title="No automations yet">{EXPLANATION}</Empty>;
  return (
    <Page title="Automations" actions={make}>
      <Rows query={useQuery(automationsQuery)} name="automations" empty={empty}>
        {(automation) => <AutomationRow key={automation.id} automation={automation} />}
      </Rows>
      <Sources />
    </Page>
  );
}

type Props = { automation: Automation };

function AutomationRow({ automation }: Props) {
  const { id, last_triggered_at: last } = automation;
  const facts = [...timesOf(automation), last === null ? 'Not run yet' : <LastRun id={id} time={last} />];
  return (
    <Row title={automation.name} href={`/automations/${id}`} facts={facts}>
      <OnOff automation={automation} />
      <RunNow automation={automation} />
    </Row>
  );
}

function LastRun({ id, time }: { id: string; time: string }) {
  const queryFn = async () => (await runsOf(id, 1)).runs[0] ?? null;
  const { data: run } = useQuery({
    queryKey: ['automation-runs', id, time],
    queryFn,
    refetchInterval: ({ state: { data } }) => data?.completed_at === null && REFRESH_MS,
  });
  return (
    <>
      Last run <Ago time={time} /> {run && <Badge state={run.status} />}
    </>
  );
}

function OnOff({ automation: { id, name, state } }: Props) {
  const turn = useAction((enabled: boolean) =>
    bodyOf(api.PATCH('/api/automation/v1/{id}', { ...at(id), body: { enabled } })),
  );
  const isOn = turn.isPending ? turn.variables : state === 'ACTIVE';
  const change = ({ target }: { target: HTMLInputElement }) => turn.mutate(target.checked);
  const label = `${name} starts by itself`;
  return <input type="checkbox" role="switch" aria-label={label} title={label} checked={isOn} onChange={change} />;
}

function RunNow({ automation: { id, name } }: Props) {
  const run = async () => {
    const { status, error_detail: why } = await bodyOf(api.POST('/api/automation/v1/{id}/dispatch', at(id)));
    const text = why ?? `${name} runs now, or as soon as its limits allow.`;
    tell(status === 'SKIPPED' ? `${name} does not run` : 'Run requested', text);
  };
  return <ActionButton title={`Run ${name} now`} act={run} text="Run now" />;
}

export function NewAutomationPage() {
  const templates = useQuery(templatesQuery);
  const [chosen, choose] = useState('');
  const template = templates.data?.find(({ id }) => id === chosen);
  return (
    <Page title="New automation">
      <Group title="Start from a template">
        <Rows query={templates} name="templates">
          {({ id, name, description }) => (
            <Row key={id} title={name} facts={description}>
              <Button
                aria-label={`Use the template ${name}`}
                aria-pressed={id === chosen}
                onClick={() => choose(id)}
                text="Use"
              />
            </Row>
          )}
        </Rows>
      </Group>
      <Editor key={chosen} automation={null} {...(template && { draft: draftOf(template) })} />
    </Page>
  );
}

export function AutomationPage({ id }: { id: string }) {
  const automation = useQuery(automationQuery(id));
  const { data } = automation;
  return (
    <Page
      title={data?.name ?? 'Automation'}
      actions={data && <Actions automation={data} />}
      lead={data && timesOf(data).join(' · ')}>
      <Loaded query={automation} name="the automation">
        {(found) => (
          <>
            <details className="panel">
              <summary>Edit what it does, and when</summary>
              <Editor automation={found} />
            </details>
            <Runs id={id} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ automation }: { automation: Automation }) {
  const { id, name } = automation;
  const [, navigate] = useLocation();
  const remove = async () => {
    await bodyOf(api.DELETE('/api/automation/v1/{id}', at(id)));
    navigate('/automations');
  };
  const text = 'Its runs are deleted. The conversations that they started stay.';
  return (
    <>
      <OnOff automation={automation} />
      <RunNow automation={automation} />
      <Confirmed name="Delete" of={name} text={text} act={remove} />
    </>
  );
}

function Runs({ id }: { id: string }) {
  const queryFn = async () => (await runsOf(id, MOST_RUNS)).runs;
  const runs = useQuery({ queryKey: ['automation-runs', id], queryFn, refetchInterval: REFRESH_MS });
  const empty = <Empty title="No run yet">The first one starts by itself, or with Run now.</Empty>;
  return (
    <Group title="Runs">
      <Rows query={runs} name="runs" empty={empty}>
        {(run) => <RunRow key={run.id} run={run} />}
      </Rows>
    </Group>
  );
}

/** Which event it was, with its page on the host. */
function Cause({ run: { event, trigger_source: source } }: { run: Run }) {
  if (event === null) {
    return CAUSES[source];
  }
  const text = subjectText(event);
  return event.url === null ? text : <Elsewhere href={event.url} text={text} />;
}

function RunRow({ run }: { run: Run }) {
  const { id, status, cost, error_detail: error, started_at: from, completed_at: to } = run;
  const cancel = () =>
    bodyOf(api.POST('/api/automation/v1/runs/{run_id}/cancel', { params: { path: { run_id: id } } }));
  const conversations = (run.run_metadata['conversation_ids'] ?? []) as string[];
  const facts = [
    <Ago time={run.created_at} />,
    run.event?.title && run.event.key,
    run.event?.by && `by ${run.event.by}`,
    from !== null && to !== null && duration((Date.parse(to) - Date.parse(from)) / 1000),
    // Nothing where it is not known what the model costs.
    cost !== null && cost > 0 && dollars.format(cost),
    ...conversations.map((each, index) => <Link href={`/conversations/${each}`}>{`Conversation ${index + 1}`}</Link>),
  ];
  const why = error !== null && <p className={status === 'FAILED' ? 'bad' : 'hint'}>{error}</p>;
  return (
    <Row title={<Cause run={run} />} facts={facts} more={why}>
      <Badge state={status} />
      {to === null && <ActionButton look="link" act={cancel} text="Cancel" />}
    </Row>
  );
}

const LEAD = 'Webhooks through which git hosts, and your own servers, report events.';
const OWN =
  'It signs with HMAC-SHA256 in X-Signature-256 and names the event in the member type. The API allows other ways.';
const ROTATION = 'The old secret ends at once: events are refused until the host has the new one.';
const REFUSED = 'Its events are refused from now on.';
const SECRET = 'The host signs its events with it. It is shown this once.';

const KNOWN = [...Object.entries(SOURCES), ['', 'A server of your own'] as const];

const remove = (id: string) => bodyOf(api.DELETE('/api/automation/v1/webhooks/{id}', at(id)));

function Sources() {
  const [{ source }, bind] = useFilter({ source: 'github' });
  const [dialog, show] = useSecretOnce('Secret of the source', SECRET);
  const create = async (field: Fields) => {
    const name = field('name') || source;
    const body = { source: name, name: sourceName(name) };
    show((await bodyOf(api.POST('/api/automation/v1/webhooks', { body }))).webhook_secret);
    return 'Enter the address at the host, with JSON as content type.';
  };
  const rotate = async (id: string) => {
    show((await bodyOf(api.POST('/api/automation/v1/webhooks/{id}/rotate-secret', at(id)))).webhook_secret);
  };
  return (
    <Section title="Sources of events" lead={LEAD}>
      <Rows query={useQuery(sourcesQuery)} name="sources" empty="No source of events is connected.">
        {({ id, name, webhook_url: url, enabled }) => (
          <Row key={id} title={enabled ? name : `${name} (switched off)`} facts={<code>{url}</code>}>
            <Confirmed name="Rotate secret" of={name} text={ROTATION} act={() => rotate(id)} />
            <Confirmed name="Delete" of={name} text={REFUSED} act={() => remove(id)} />
          </Row>
        )}
      </Rows>
      <Form name="Source" submit="Create webhook" onSubmit={create}>
        <SelectField label="Source" options={KNOWN} {...bind('source')} />
        {source === '' && <TextField label="Name" required pattern="[a-z0-9_\-]+" placeholder="ci" hint={OWN} />}
      </Form>
      {dialog}
    </Section>
  );
}
