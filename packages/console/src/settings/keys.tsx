import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, bodyQuery, type Schemas, sessionQuery } from '../api/client.js';
import { Confirmed, useSecretOnce } from '../ui/actions.js';
import { Ago, Row, Rows, Section } from '../ui/blocks.js';
import { type Fields, Form, given, TextField } from '../ui/form.js';
import { ScopesField, scopesOf } from '../ui/scopes-field.js';

const keysQuery = bodyQuery(['keys'], () => api.GET('/api/v1/api-keys'));
const LEAD = 'What programs and devices sign in with as you. Revoke what you do not know or use any more.';
const MADE = 'Copy it now: it is shown this once, and nowhere again.';
const REVOKED = 'Programs, devices and sessions that it has let in are refused within seconds.';

export function Keys() {
  const [dialog, show] = useSecretOnce('Your new key', MADE);
  const { is_admin: isAdmin = false } = useQuery(sessionQuery).data ?? {};
  const make = async (field: Fields) => {
    // To the end of that day, as people read it.
    const day = field('expires');
    const expires = day === '' ? '' : new Date(`${day}T23:59:59`).toISOString();
    const body = { name: field('name'), scopes: scopesOf(field), ...given({ expires_at: expires }) };
    show((await bodyOf(api.POST('/api/v1/api-keys', { body }))).key);
  };
  const keys = useQuery({ ...keysQuery, select: (all) => all.filter(isAlive) });
  return (
    <Section title="Keys" lead={LEAD}>
      <Rows query={keys} name="keys" empty="No key works at the moment.">
        {(key) => <KeyRow key={key.id} of={key} />}
      </Rows>
      <Form name="Key" submit="Make key" onSubmit={make}>
        <div className="columns">
          <TextField label="Name" required maxLength={100} placeholder="ci" autoComplete="off" />
          <TextField label="Expires" member="expires_at" type="date" hint="At the end of that day; empty for never" />
        </div>
        <ScopesField isAdmin={isAdmin} />
      </Form>
      {dialog}
    </Section>
  );
}

function isAlive({ revoked_at: revoked, expires_at: expires }: Schemas['ApiKey']): boolean {
  return revoked === null && (expires === null || Date.parse(expires) > Date.now());
}

function KeyRow({ of: key }: { of: Schemas['ApiKey'] }) {
  const { id, name, scopes, created_at: made, expires_at: expires, last_used_at: used } = key;
  const title = (
    <>
      {name} <code>{id}</code>
    </>
  );
  const facts = [
    `May ${scopes.join(', ')}`,
    <Fact key="made" name="Made" time={made} />,
    used === null ? 'Never used' : <Fact key="used" name="Last used" time={used} />,
    expires === null ? 'Never expires' : <Fact key="expires" name="Expires" time={expires} />,
  ];
  const revoke = () => bodyOf(api.DELETE('/api/v1/api-keys/{id}', at(id)));
  return (
    <Row title={title} facts={facts}>
      <Confirmed name="Revoke" of={name} text={REVOKED} act={revoke} />
    </Row>
  );
}

function Fact({ name, time }: { name: string; time: string }) {
  return (
    <>
      {name} <Ago time={time} />
    </>
  );
}
