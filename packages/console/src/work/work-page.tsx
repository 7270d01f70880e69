import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { Link } from 'wouter';
import { meQuery, PROVIDER_NAMES, providerName, useMay } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { CheckField, fieldsOf, SelectField, TextField, useFilter } from '../ui/form.js';
import { Badge, Button, Callout, Elsewhere, Empty, Group, Loaded, Row } from '../ui/blocks.js';
import { choiceOf, FOLLOW, ModelAndAgent, StartProgress, useStart } from './start.js';
import { type HostStatus, KINDS, reasonOf, refusingHosts, type Task, tasksQuery } from './suggested-tasks.js';

const ALL = { task_type: '', git_provider: '', text: '' };

/** What to do next, on all hosts. */
export function WorkPage() {
  const me = useQuery(meQuery);
  const maySet = useMay('settings');
  const hasHost = Object.keys(me.data?.provider_tokens_set ?? {}).length > 0;
  const tasks = useQuery({ ...tasksQuery, enabled: hasHost });
  const refresh = <Button isBusy={tasks.isFetching} onClick={() => void tasks.refetch()} text="Refresh" />;
  return (
    <Page title="Work" actions={hasHost && refresh}>
      <Loaded query={me} name="settings">
        {({ llm_model: model, provider_tokens_unverified: unverified }) =>
          !hasHost && !maySet ? (
            <Empty title="No git host is connected">
              <Link className="button primary" href="/conversations" children="See conversations" />
            </Empty>
          ) : hasHost ? (
            <>
              {model === null && maySet && (
                <Callout kind="warning" title="Agents have no model yet">
                  <p>
                    Choose one in <Link href="/settings#model">Settings</Link>. Then every task starts with one click.
                  </p>
                </Callout>
              )}
              <Loaded query={tasks} name="tasks" explain={(error) => refused(error, unverified)}>
                {({ tasks: all, hosts }) => (
                  <>
                    <Hosts hosts={hosts} unverified={unverified} />
                    <Tasks all={all} />
                  </>
                )}
              </Loaded>
            </>
          ) : (
            <Empty title="Connect a git host to see your work">
              <p>
                Slipway finds your merge conflicts, failing checks, unresolved comments, issues and pull requests, and
                lets an agent work on the ones that you start.
              </p>
              <Link className="button primary" href="/settings#git-hosts" children="Connect a git host" />
              {model === null && (
                <p>
                  Then <Link href="/settings#model">choose the model</Link> that your agents use, and every task starts
                  with one click.
                </p>
              )}
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}

/** Nothing for what is no refusal of a host. */
function refused(error: Error, unverified: string[]) {
  const hosts = refusingHosts(error);
  return hosts.length > 0 && <Hosts hosts={hosts} unverified={unverified} />;
}

function Hosts({ hosts, unverified }: { hosts: HostStatus[]; unverified: string[] }) {
  return (
    <ul className="hosts" aria-label="Sources">
      {hosts.map((host) => {
        const reason = reasonOf(host, !unverified.includes(host.provider));
        return (
          <li key={host.provider} className={host.state}>
            <strong>{providerName(host.provider)}</strong>
            {reason === '' ? <Badge state={host.state} /> : `: ${reason}`}
          </li>
        );
      })}
    </ul>
  );
}

function Tasks({ all }: { all: Task[] }) {
  const [filter, bind] = useFilter(ALL);
  const mayRun = useMay('run');
  const shown = all.filter(
    ({ task_type: kind, git_provider: provider, repo, title, issue_number: number }) =>
      ['', kind].includes(filter.task_type) &&
      ['', provider].includes(filter.git_provider) &&
      `${repo} ${title} #${number}`.toLowerCase().includes(filter.text.toLowerCase()),
  );
  const providers = new Map(all.map(({ git_provider: provider }) => [provider, PROVIDER_NAMES[provider]]));
  return all.length === 0 ? (
    <Empty title="Nothing to do">You have no open work in the repositories that were active most recently.</Empty>
  ) : (
    <>
      <form className="filters" aria-label="Filter" name="filter">
        <SelectField label="Kind" options={[['', 'All kinds'], ...Object.entries(KINDS)]} {...bind('task_type')} />
        <SelectField label="Host" options={[['', 'All hosts'], ...providers]} {...bind('git_provider')} />
        <TextField label="Search" type="search" placeholder="Title or repository" {...bind('text')} />
        <p role="status" className="count">
          {shown.length === all.length ? `${all.length} tasks` : `${shown.length} of ${all.length} tasks`}
        </p>
      </form>
      {mayRun && (
        <form id="start" className="filters" aria-label="Start with">
          <ModelAndAgent />
          <CheckField {...FOLLOW} />
        </form>
      )}
      {shown.length === 0 && <Empty title="No task matches the filter." />}
      {Object.entries(KINDS).map(([kind, name]) => {
        const rows = shown
          .filter(({ task_type: type }) => type === kind)
          .map((task) => <TaskRow key={[task.git_provider, task.repo, task.issue_number].join(' ')} task={task} />);
        return (
          rows.length > 0 && (
            <Group key={kind} title={name} count={rows.length} children={<ul className="rows" children={rows} />} />
          )
        );
      })}
    </>
  );
}

function TaskRow({ task }: { task: Task }) {
  const start = useStart();
  const mayRun = useMay('run');
  const id = useId();
  const { url, ...suggested } = task;
  const { git_provider: provider, repo, issue_number: number, title } = suggested;
  const host = <span className={`host ${provider}`}>{providerName(provider)}</span>;
  return (
    <Row
      title={<span id={id}>{url === null ? title : <Elsewhere href={url} text={title} />}</span>}
      facts={[host, repo, number > 0 && `#${number}`]}
      more={<StartProgress start={start} />}>
      {mayRun && (
        <Button
          look="primary"
          isBusy={start.isUnderWay}
          aria-describedby={id}
          form="start"
          onClick={({ currentTarget: { form } }) =>
            start.begin({ suggested_task: suggested, title, ...(form && choiceOf(fieldsOf(form))) })
          }
          text="Start"
        />
      )}
    </Row>
  );
}
