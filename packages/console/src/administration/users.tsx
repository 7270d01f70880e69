import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at, bodyOf, by, sessionQuery } from '../api/client.js';
import { Badge, Button, Loaded, Row, Rows, Section, When } from '../ui/blocks.js';
import { ActionButton, Confirmed } from '../ui/actions.js';
import { type Fields, Form, given, SelectField, TextField, useFilter } from '../ui/form.js';
import { KeysOf } from '../settings/keys.js';
import { mayGiveRoles, organizationQuery, type Role, type User, usersQuery, wholeOf } from './user-queries.js';

async function create(field: Fields) {
  const email = field('email');
  await bodyOf(api.POST('/api/v1/users', { body: { email, ...given({ name: field('name') }) } }));
  return `${email} is a user now. Make a key next.`;
}

export function Users() {
  return (
    <Section title="Users" lead="Who may use this service, with which role, and the keys of each.">
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
  const { id, email, name, is_admin: isAdmin, kind, created_at: made, disabled_at: disabled, sign_in: said } = user;
  const [isOpen, setOpen] = useState(false);
  const me = useQuery(sessionQuery).data?.id;
  const isOwner = mayGiveRoles(useQuery(usersQuery).data ?? [], me);
  // Other administrators are refused.
  const mayChange = isOwner || user.role !== 'owner';
  const role = ROLES[user.role];
  const facts = [
    name,
    kind === 'service' ? `${role}, a service` : role,
    <When what="Created" time={made} />,
    ...(said ? factsOf(said) : []),
  ];
  return (
    <Row
      title={email}
      facts={facts}
      more={isOpen && <KeysOf userId={id} isAdmin={isAdmin} form={`Key of ${email}`} dialog={`Key of ${email}`} />}>
      {disabled !== null && <Badge state="disabled" />}
      {mayChange && (
        <Button aria-expanded={isOpen} title={`Keys of ${email}`} onClick={() => setOpen(!isOpen)} text="Keys" />
      )}
      {mayChange && me !== id && (
        <>
          {said?.decides_role !== true && <ChangeRole user={user} isOwner={isOwner} />}
          <Enable user={user} />
          <RemoveUser id={id} email={email} onRemove={() => setOpen(false)} />
        </>
      )}
    </Row>
  );
}

const ROLES: Record<Role, string> = { viewer: 'Viewer', member: 'Member', admin: 'Administrator', owner: 'Owner' };

/** What the identity provider said last, and what the map made of it. */
function factsOf({ issuer, groups, role, decides_role: decides, last_seen_at: seen }: NonNullable<User['sign_in']>) {
  const list = groups?.length ? `Groups: ${groups.join(', ')}` : 'No groups';
  const gives = role === null ? 'No role by these groups' : `Role by these groups: ${ROLES[role]}`;
  return [
    <When what={`Seen by ${new URL(issuer).host}`} time={seen} />,
    groups === null ? 'Groups were left out for their number, so the role stays' : list,
    decides && groups !== null && gives,
  ];
}

const MAY: Record<Role, string> = {
  viewer: 'Reads what is shared, and starts nothing. Its keys only read.',
  member: 'Starts conversations, and shares them. Its keys can no longer do what administrators do.',
  admin: 'Manages users and what is shared, sees the audit, and stops conversations and sandboxes of all users.',
  owner: 'Does what administrators do, and gives roles to members.',
};

/** Owners give each role; other administrators make administrators, and members of them. */
function ChangeRole({ user: { id, email, role }, isOwner }: { user: User; isOwner: boolean }) {
  const [{ chosen }, bind, setGiven] = useFilter({ chosen: role });
  const organization = useQuery(organizationQuery).data ?? '';
  const other = role === 'admin' ? 'member' : 'admin';
  const options = Object.entries(ROLES).filter(([each]) => isOwner || each === role || each === other);
  const act = () => {
    const params = { path: { organization_id: organization, user_id: id } };
    return isOwner
      ? bodyOf(api.PATCH('/api/organizations/{organization_id}/members/{user_id}', { params, body: { role: chosen } }))
      : bodyOf(api.PATCH('/api/v1/users/{id}', { ...at(id), body: { is_admin: chosen === 'admin' } }));
  };
  return (
    <Confirmed
      name="Change role"
      of={email}
      text={MAY[chosen]}
      act={act}
      isReady={chosen !== role && organization !== ''}
      onAsk={() => setGiven({ chosen: role })}>
      <SelectField label="Role" options={options} {...bind('chosen')} />
    </Confirmed>
  );
}

const DISABLED =
  'Signed out everywhere within a second. Keys are refused, automations and messages wait. Nothing is deleted, and you can enable this user again.';
const SANDBOXES = {
  pause: 'Pause them: what was interrupted goes on after a resume',
  stop: 'Stop them: what was interrupted does not go on',
  keep: 'Let what runs in them end',
} as const;

const PAUSED = { sandboxes: 'pause' };

function Enable({ user: { id, email, disabled_at: disabled } }: { user: User }) {
  const [{ sandboxes }, bind, setGiven] = useFilter(PAUSED);
  if (disabled !== null) {
    const enable = () => bodyOf(api.POST('/api/v1/users/{id}/enable', at(id)));
    return <ActionButton title={`Enable ${email}`} act={enable} text="Enable" />;
  }
  const disable = () => {
    const query = { sandboxes: sandboxes as keyof typeof SANDBOXES };
    return bodyOf(api.POST('/api/v1/users/{id}/disable', { params: { path: { id }, query } }));
  };
  return (
    <Confirmed name="Disable" of={email} text={DISABLED} act={disable} onAsk={() => setGiven(PAUSED)}>
      <SandboxCount userId={id} email={email} />
      <SelectField label="Sandboxes" options={Object.entries(SANDBOXES)} {...bind('sandboxes')} />
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
