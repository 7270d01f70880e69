import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at, bodyOf, by, type Schemas, sessionQuery } from '../api/client.js';
import { Page } from '../shell/layout.js';
import { Ago, Badge, Button, Contents, duration, Loaded, Pairs } from '../ui/blocks.js';
import { Row, Rows, Section, Table, usePages, When } from '../ui/blocks.js';
import { ActionButton, Confirmed } from '../ui/actions.js';
import { type Fields, Form, given, SelectField, TextField, useFilter } from '../ui/form.js';
import { KeysOf } from '../settings/keys.js';
import { AUDIT_ACTIONS } from '../../generated/audit-actions.js';

const REFRESH_MS = 10_000;

export function AdministrationPage() {
  return (
    <Page title="Administration">
      <Contents titles={['Service', 'Users', 'Sandboxes', 'Audit']} />
      <Service />
      <Users />
      <Sandboxes />
      <Audit />
    </Page>
  );
}

/** What the service is doing: whether it is ready and why not, what waits, and which version runs. */
function Service() {
  const service = useQuery({
    queryKey: ['service'],
    queryFn: async () => {
      const [found, info] = await Promise.all([
        bodyOf(api.GET('/api/v1/diagnostics')),
        bodyOf(api.GET('/server_info')),
      ]);
      return { ...found, ...info };
    },
    refetchInterval: REFRESH_MS,
  });
  return (
    <Section title="Service" lead="What the service does for all users, as one of its replicas sees it.">
      <Loaded query={service} name="the state of the service">
        {({ parts, versions, uptime, instance_id: replica, activity, log }) => (
          <>
            <Pairs
              className="figures"
              of={{
                Readiness: <Badge state={parts.every(({ status }) => status === 'ok') ? 'ok' : 'degraded'} />,
                ...figuresOf(activity),
                Version: versions['slipway'],
                'Node.js': versions['node'],
                Uptime: duration(uptime),
                Replica: <code>{replica.slice(0, 8)}</code>,
              }}
            />
            <ul className="rows">
              {parts.map(({ name, status: state, advice, cause }) => (
                <Row key={name} title={name.replaceAll('_', ' ')} facts={[advice, cause].filter(Boolean).join(' ')}>
                  <Badge state={state} />
                </Row>
              ))}
            </ul>
            <details>
              <summary>Last lines of the log</summary>
              <pre className="content" tabIndex={0}>
                {log.join('\n')}
              </pre>
            </details>
          </>
        )}
      </Loaded>
    </Section>
  );
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function figuresOf({ starts_waiting: waiting, starts, conversations, sandboxes }: Schemas['Activity']) {
  const { READY: _ready, ERROR: _failed, ...underWay } = starts;
  const queued = sum(waiting);
  return {
    Queue: queued === 0 ? 'empty' : `${queued} starts wait, ${waiting['place']} of them for a sandbox`,
    'Starts under way': sum(underWay),
    'Agents at work': conversations['running'],
    'Running sandboxes': sandboxes['RUNNING'],
  };
}

const MOST = 100;
const SANDBOX_COLUMNS = ['Sandbox', 'Owner', 'State', 'Created', ''];

function Sandboxes() {
  const users = useQuery(usersQuery);
  const sandboxes = useQuery({
    queryKey: ['all-sandboxes'],
    queryFn: async () => (await bodyOf(api.GET('/api/v1/sandboxes/search', by({ all: true, limit: MOST })))).items,
    refetchInterval: REFRESH_MS,
  });
  const ownerOf = (id: string) => users.data?.find((user) => user.id === id)?.email ?? id;
  return (
    <Section
      title="Sandboxes"
      lead={`The newest ${MOST} of all users. A stopped sandbox keeps its files, and its owner can resume it.`}>
      <Table query={sandboxes} name="sandboxes of all users" empty="No sandboxes yet" columns={SANDBOX_COLUMNS}>
        {({ id, created_by_user_id: owner, status, created_at: made }) => [
          <code>{id}</code>,
          ownerOf(owner),
          <Badge state={status} />,
          <Ago time={made} />,
          <ActionButton
            disabled={status !== 'RUNNING' && status !== 'STARTING'}
            title={`Stop ${id}`}
            act={() => bodyOf(api.POST('/api/v1/sandboxes/{id}/pause', at(id)))}
            text="Stop"
          />,
        ]}
      </Table>
    </Section>
  );
}

type User = Schemas['User'];

type PageOf<T> = { items: T[]; next_page_id: string | null };
type Part = { limit: number; page_id?: string };

/** What comes in pages, as a whole. */
async function wholeOf<T>(load: (part: Part) => Promise<PageOf<T>>, page = ''): Promise<T[]> {
  const { items, next_page_id: next } = await load({ limit: MOST, ...given({ page_id: page }) });
  return next === null ? items : [...items, ...(await wholeOf(load, next))];
}

const usersQuery = queryOptions({
  queryKey: ['users'],
  queryFn: () => wholeOf((part) => bodyOf(api.GET('/api/v1/users', by(part)))),
});

async function create(field: Fields) {
  const email = field('email');
  await bodyOf(api.POST('/api/v1/users', { body: { email, ...given({ name: field('name') }) } }));
  return `${email} is a user now. Make a key next.`;
}

function Users() {
  return (
    <Section title="Users" lead="Who may use this service, and the keys of each.">
      <Rows query={useQuery(usersQuery)} name="users" empty="No users yet.">
        {(user) => <UserRow key={user.id} user={user} />}
      </Rows>
      <Form name="Invitation" submit="Create user" onSubmit={create}>
        <div className="columns">
          <TextField label="Email" type="email" required placeholder="ada@example.com" />
          <TextField label="Name" hint="Optional" />
        </div>
      </Form>
    </Section>
  );
}

function UserRow({ user }: { user: User }) {
  const { id, email, name, is_admin: isAdmin, kind, created_at: made, disabled_at: disabled } = user;
  const [isOpen, setOpen] = useState(false);
  const session = useQuery(sessionQuery);
  const role = isAdmin ? 'Administrator' : 'User';
  const facts = [name, kind === 'service' ? `${role}, a service` : role, <When what="Created" time={made} />];
  return (
    <Row
      title={email}
      facts={facts}
      more={isOpen && <KeysOf userId={id} isAdmin={isAdmin} form={`Key of ${email}`} dialog={`Key of ${email}`} />}>
      {disabled !== null && <Badge state="disabled" />}
      <Button aria-expanded={isOpen} title={`Keys of ${email}`} onClick={() => setOpen(!isOpen)} text="Keys" />
      {session.data?.id !== id && (
        <>
          <Administer user={user} />
          <Enable user={user} />
          <RemoveUser id={id} email={email} onRemove={() => setOpen(false)} />
        </>
      )}
    </Row>
  );
}

const MAKE = 'Administrators manage users, see the audit, and stop sandboxes of all users.';
const UNMAKE = 'What this user has stays. Its keys can no longer do what administrators do.';

function Administer({ user: { id, email, is_admin: isAdmin } }: { user: User }) {
  const act = () => bodyOf(api.PATCH('/api/v1/users/{id}', { ...at(id), body: { is_admin: !isAdmin } }));
  const name = isAdmin ? 'Remove administrator rights' : 'Make administrator';
  return <Confirmed name={name} of={email} text={isAdmin ? UNMAKE : MAKE} act={act} />;
}

const DISABLED =
  'Signed out everywhere within a second. Keys are refused, automations and messages wait, sandboxes are paused. Nothing is deleted, and you can enable this user again.';

function Enable({ user: { id, email, disabled_at: disabled } }: { user: User }) {
  if (disabled !== null) {
    const enable = () => bodyOf(api.POST('/api/v1/users/{id}/enable', at(id)));
    return <ActionButton title={`Enable ${email}`} act={enable} text="Enable" />;
  }
  const disable = () => bodyOf(api.POST('/api/v1/users/{id}/disable', at(id)));
  return (
    <Confirmed name="Disable" of={email} text={DISABLED} act={disable}>
      <SandboxCount userId={id} email={email} />
    </Confirmed>
  );
}

const REMOVED = 'Keys, tokens, secrets, settings and automations are deleted at once.';
const KEPT =
  'All conversations and sandboxes are paused and kept for a day, unless the operator has chosen another time.';

const NOTHING = { typed: '', heir: '' };

/** The address has to be typed, so that no colleague is removed by accident. */
function RemoveUser({ id, email, onRemove }: { id: string; email: string; onRemove: () => void }) {
  const [{ typed, heir }, bind, setGiven] = useFilter(NOTHING);
  const others = (useQuery(usersQuery).data ?? []).filter((user) => user.id !== id);
  const heirs = others.map((user) => [user.id, user.email] as const);
  const name = others.find((user) => user.id === heir)?.email;
  const remove = () => {
    // The list of keys would be asked for again, of a user who is gone.
    onRemove();
    const params = { path: { id }, query: given({ hand_over_to: heir }) };
    return bodyOf(api.DELETE('/api/v1/users/{id}', { params }));
  };
  return (
    <Confirmed
      name="Remove"
      of={email}
      text={REMOVED}
      act={remove}
      isReady={typed.trim() === email}
      onAsk={() => setGiven(NOTHING)}>
      <SandboxCount userId={id} email={email} />
      <p>{name === undefined ? KEPT : `All conversations and sandboxes go to ${name}. The sandboxes are paused.`}</p>
      <SelectField label="Hand over to" options={[['', 'Nobody'], ...heirs]} {...bind('heir')} />
      <TextField label="Address" hint={`Type ${email} to remove this user.`} autoComplete="off" {...bind('typed')} />
    </Confirmed>
  );
}

/** The API counts conversations for their owner only. */
function SandboxCount({ userId, email }: { userId: string; email: string }) {
  const sandboxes = useQuery({
    queryKey: ['sandboxes-of-all'],
    queryFn: () => wholeOf((part) => bodyOf(api.GET('/api/v1/sandboxes/search', by({ all: true, ...part })))),
    select: (all) => all.filter(({ created_by_user_id: owner }) => owner === userId),
  });
  return (
    <Loaded query={sandboxes} name="the sandboxes of the user">
      {(found) => {
        const running = found.filter(({ status }) => status === 'RUNNING' || status === 'STARTING').length;
        const all = found.length === 1 ? '1 sandbox' : `${found.length} sandboxes`;
        return <p>{found.length === 0 ? `${email} has no sandboxes.` : `${email} has ${all}, ${running} running.`}</p>;
      }}
    </Loaded>
  );
}

const AUDIT_COLUMNS = ['When', 'Action', 'Who', 'What', 'From'];
const ALL = { action: '', actor_user_id: '', since: '', until: '' };

/** "API key: create" */
function actionText(action: string): string {
  const words = action.replaceAll('_', ' ').replace('.', ': ').replace('api', 'API').replace('llm', 'model');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** What a field of a local time means. */
function instant(time: string): string {
  return time === '' ? '' : new Date(time).toISOString();
}

function Audit() {
  const [filter, bind] = useFilter(ALL);
  const users = useQuery(usersQuery).data ?? [];
  const { query: entries, older } = usePages({
    queryKey: ['audit', filter],
    load: (page) => {
      const chosen = given({ ...filter, since: instant(filter.since), until: instant(filter.until) });
      const query = { limit: 50, ...page, ...(chosen as { action: Schemas['AuditAction'] }) };
      return bodyOf(api.GET('/api/v1/audit', by(query)));
    },
  });
  const actions = AUDIT_ACTIONS.map((action) => [action, actionText(action)] as const);
  const people = users.map(({ id, email }) => [id, email] as const);
  const nameOf = (id: string | null) => users.find((user) => user.id === id)?.email ?? id;
  return (
    <Section title="Audit" lead="Who did what, newest first. Entries never change.">
      <form className="filters" aria-label="Filter of the audit" name="audit">
        <SelectField label="Action" options={[['', 'All actions'], ...actions]} {...bind('action')} />
        <SelectField label="User" options={[['', 'All users'], ...people]} {...bind('actor_user_id')} />
        <TextField label="Since" type="datetime-local" {...bind('since')} />
        <TextField label="Until" type="datetime-local" {...bind('until')} />
      </form>
      <Table query={entries} name="entries of the audit" empty="No entry matches the filter." columns={AUDIT_COLUMNS}>
        {({ time, action, outcome, actor, resource, client_address: address }) => [
          <Ago time={time} />,
          <>
            {actionText(action)} {outcome !== 'done' && `(${outcome})`}
          </>,
          nameOf(actor.user_id) ?? actor.kind,
          <>
            {resource.type.replaceAll('_', ' ')} <code>{nameOf(resource.id)}</code>
          </>,
          address,
        ]}
      </Table>
      {older}
    </Section>
  );
}
