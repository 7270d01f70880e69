import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, bodyQuery, by, type Schemas, sessionQuery } from '../api/client.js';
import { Confirmed, useSecretOnce } from '../ui/actions.js';
import { Row, Rows, Section, When } from '../ui/blocks.js';
import { type Fields, Form, given, TextField } from '../ui/form.js';
import { mayOf, ScopesField, scopesOf } from '../ui/scopes-field.js';

const LEAD = 'What programs and devices sign in with as you. Revoke what you do not know or no longer use.';
const MADE = 'Copy it now. It is shown only once.';
const REVOKED = 'Programs, devices and sessions that use it are refused within seconds.';

export function Keys() {
  const { is_admin: isAdmin = false } = useQuery(sessionQuery).data ?? {};
  return (
    <Section title="Keys" lead={LEAD}>
      <KeysOf isAdmin={isAdmin} form="Key" dialog="Your new key" />
    </Section>
  );
}

interface KeysOfProps {
  /** Undefined: one's own. */
  userId?: string;
  isAdmin: boolean;
  /** Names of the form, and of the dialog that shows a new key. */
  form: string;
  dialog: string;
}

export function KeysOf({ userId, isAdmin, form, dialog: title }: KeysOfProps) {
  const [dialog, show] = useSecretOnce(title, MADE);
  const owner = userId === undefined ? {} : { user_id: userId };
  const make = async (field: Fields) => {
    // A key expires at the end of the day in the user's time zone.
    const day = field('expires');
    const expires = day === '' ? '' : new Date(`${day}T23:59:59`).toISOString();
    const body = { name: field('name'), scopes: scopesOf(field), ...owner, ...given({ expires_at: expires }) };
    show((await bodyOf(api.POST('/api/v1/api-keys', { body }))).key);
  };
  const keysQuery = bodyQuery(['keys', userId ?? ''], () => api.GET('/api/v1/api-keys', by(owner)));
  const keys = useQuery({ ...keysQuery, select: (all) => all.filter(isAlive) });
  return (
    <>
      <Rows query={keys} name="keys" empty="No keys yet.">
        {(key) => <KeyRow key={key.id} of={key} />}
      </Rows>
      <Form name={form} submit="Create key" onSubmit={make}>
        <div className="columns">
          <TextField label="Name" required maxLength={100} placeholder="ci" autoComplete="off" />
          <TextField label="Expires" member="expires_at" type="date" hint="At the end of that day; empty for never" />
        </div>
        <ScopesField isAdmin={isAdmin} />
      </Form>
      {dialog}
    </>
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
    mayOf(scopes),
    <When what="Created" time={made} />,
    used === null ? 'Never used' : <When what="Last used" time={used} />,
    expires === null ? 'Never expires' : <When what="Expires" time={expires} />,
  ];
  const revoke = () => bodyOf(api.DELETE('/api/v1/api-keys/{id}', at(id)));
  return (
    <Row title={title} facts={facts}>
      <Confirmed name="Revoke" of={name} text={REVOKED} act={revoke} />
    </Row>
  );
}
