import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at, bodyOf, bodyQuery, by, type Schemas, sessionQuery } from '../api/client.js';
import { Confirmed, useSecretOnce } from '../ui/actions.js';
import { type Fields, Form, given, TextField } from '../ui/form.js';
import { Ago, Button, Row, Rows, Section, Table } from '../ui/blocks.js';

type User = Schemas['User'];

async function usersFrom(page: string): Promise<User[]> {
  const query = by({ limit: 100, ...given({ page_id: page }) });
  const { items, next_page_id: next } = await bodyOf(api.GET('/api/v1/users', query));
  return next === null ? items : [...items, ...(await usersFrom(next))];
}

export const usersQuery = queryOptions({ queryKey: ['users'], queryFn: () => usersFrom('') });

const OLD = [usersQuery.queryKey];

async function create(field: Fields) {
  const email = field('email');
  await bodyOf(api.POST('/api/v1/users', { body: { email, ...given({ name: field('name') }) } }));
  return `${email} is there. Issue a key next.`;
}

export function Users() {
  return (
    <Section title="Users" lead="Who may use this service, and the keys of each.">
      <Rows query={useQuery(usersQuery)} name="users" empty="No user is there.">
        {(user) => <UserRow key={user.id} user={user} />}
      </Rows>
      <Form name="Invitation" submit="Create user" onSubmit={create} old={OLD}>
        <div className="columns">
          <TextField label="Email" type="email" required placeholder="ada@example.com" />
          <TextField label="Name" hint="Optional" />
        </div>
      </Form>
    </Section>
  );
}

function UserRow({ user: { id, email, name, is_admin: isAdmin, created_at: made } }: { user: User }) {
  const [isOpen, setOpen] = useState(false);
  const session = useQuery(sessionQuery);
  const remove = () => bodyOf(api.DELETE('/api/v1/users/{id}', at(id)));
  const facts = [name, isAdmin ? 'Administrator' : 'User', <Ago time={made} />];
  return (
    <Row title={email} facts={facts} more={isOpen && <Keys userId={id} email={email} />}>
      <Button aria-expanded={isOpen} title={`Keys of ${email}`} onClick={() => setOpen(!isOpen)} text="Keys" />
      {session.data?.id !== id && (
        <Confirmed name="Remove" of={email} text="Keys and settings end at once." act={remove} old={OLD} />
      )}
    </Row>
  );
}

const revoke = (id: string) => bodyOf(api.DELETE('/api/v1/api-keys/{id}', at(id)));
const REVOKED = 'It ends in five seconds.';
const ISSUED = 'Hand it over safely: it is shown this once, and nowhere again.';

function Keys({ userId, email }: { userId: string; email: string }) {
  const [dialog, show] = useSecretOnce(`Key of ${email}`, ISSUED);
  const queryKey = ['keys', userId];
  const keys = useQuery(bodyQuery(queryKey, () => api.GET('/api/v1/api-keys', by({ user_id: userId }))));
  const issue = async (field: Fields) => {
    const body = { name: field('name of the key'), user_id: userId };
    show((await bodyOf(api.POST('/api/v1/api-keys', { body }))).key);
  };
  return (
    <>
      <Table query={keys} name={`keys of ${email}`} columns={['Key', 'Made', 'Last used', '']}>
        {({ id, name, created_at: made, last_used_at: used, revoked_at: revoked }) => [
          <>
            {name} <code>{id}</code>
          </>,
          <Ago time={made} />,
          used === null ? 'never' : <Ago time={used} />,
          revoked === null ? (
            <Confirmed name="Revoke" of={name} text={REVOKED} act={() => revoke(id)} old={[queryKey]} />
          ) : (
            'revoked'
          ),
        ]}
      </Table>
      <Form name={`Key of ${email}`} submit="Issue key" onSubmit={issue} old={[queryKey]}>
        <TextField label="Name of the key" required placeholder="laptop" />
      </Form>
      {dialog}
    </>
  );
}
