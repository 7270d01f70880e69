import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, bodyQuery, by, type Schemas, sessionQuery } from '../api/client.js';
import { Confirmed, useSecretOnce } from '../ui/actions.js';
import { Row, Rows, Section, When } from '../ui/blocks.js';
import { type Fields, Form, given, TextField } from '../ui/form.js';
import { mayOf, ScopesField, scopesOf } from '../ui/scopes-field.js';

/** A service that knows no keys for repositories says nothing of them. */
type Key = Schemas['ApiKey'] & { repositories?: string[] | null };

const REPOSITORIES = 'Optional, with commas: the key sees and moves only conversations of these repositories';
const LEAD = 'What programs and devices sign in with as you. Revoke what you do not know or no longer use.';
const MADE = 'Copy it now. It is shown only once.';
const DEVICES = 'Programs on other machines that you let in by a code. Revoke one that is lost.';
const REVOKED = 'Programs, devices and sessions that use it are refused within seconds.';

export function Keys() {
  const { is_admin: isAdmin = false } = useQuery(sessionQuery).data ?? {};
  return (
    <Section title="Keys" lead={LEAD}>
      <KeysOf isAdmin={isAdmin} form="Key" dialog="Your new key" />
    </Section>
  );
}

/** What was let in by its code; a new one comes by the page of devices. */
export function Devices() {
  const devices = useQuery({ ...keysQuery(), select: (all) => all.filter((key) => isAlive(key) && key.of_device) });
  return (
    <Section title="Devices" lead={DEVICES}>
      <Rows query={devices} name="devices" empty="No device is let in.">
        {(key) => <KeyRow key={key.id} of={key} />}
      </Rows>
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
    const times = { not_before: instant(field('valid from'), BEGIN), expires_at: instant(field('expires'), END) };
    const repositories = field('repositories')
      .split(',')
      .map((name) => name.trim())
      .filter(Boolean);
    const limits = { scopes: scopesOf(field), ...given(times), ...(repositories.length > 0 && { repositories }) };
    const body = { name: field('name'), ...limits, ...owner };
    show((await bodyOf(api.POST('/api/v1/api-keys', { body }))).key);
  };
  // One's own keys of devices have a part of their own.
  const isShown = (key: Key) => isAlive(key) && (userId !== undefined || !key.of_device);
  const keys = useQuery({ ...keysQuery(userId), select: (all) => all.filter(isShown) });
  return (
    <>
      <Rows query={keys} name="keys" empty="No keys yet.">
        {(key) => <KeyRow key={key.id} of={key} />}
      </Rows>
      <Form name={form} submit="Create key" onSubmit={make}>
        <div className="columns">
          <TextField label="Name" required maxLength={100} placeholder="ci" autoComplete="off" />
          <TextField label="Valid from" member="not_before" type="date" hint="Empty to begin at once" />
          <TextField label="Expires" member="expires_at" type="date" hint="At the end of that day; empty for never" />
        </div>
        <TextField label="Repositories" placeholder="github:octo/app, gitlab:group/*" hint={REPOSITORIES} />
        <ScopesField isAdmin={isAdmin} />
      </Form>
      {dialog}
    </>
  );
}

function keysQuery(userId?: string) {
  const owner = userId === undefined ? {} : { user_id: userId };
  return bodyQuery(['keys', userId ?? ''], () => api.GET('/api/v1/api-keys', by(owner)));
}

const [BEGIN, END] = ['00:00:00', '23:59:59'];

/** What a day means in the user's time zone; empty for none. */
function instant(day: string, time: string): string {
  return day === '' ? '' : new Date(`${day}T${time}`).toISOString();
}

function isAlive({ revoked_at: revoked, expires_at: expires }: Key): boolean {
  return revoked === null && (expires === null || Date.parse(expires) > Date.now());
}

function KeyRow({ of: key }: { of: Key }) {
  const { id, name, scopes, repositories, created_at: made, expires_at: expires, last_used_at: used } = key;
  const { not_before: from, of_device: isOfDevice } = key;
  const title = (
    <>
      {name} <code>{id}</code>
    </>
  );
  const facts = [
    mayOf(scopes),
    repositories && `In ${repositories.join(', ')}`,
    isOfDevice && 'Of a device',
    <When what="Created" time={made} />,
    used === null ? 'Never used' : <When what="Last used" time={used} />,
    from !== null && Date.parse(from) > Date.now() && <When what="Valid" time={from} />,
    expires === null ? 'Never expires' : <When what="Expires" time={expires} />,
  ];
  const revoke = () => bodyOf(api.DELETE('/api/v1/api-keys/{id}', at(id)));
  return (
    <Row title={title} facts={facts}>
      <Confirmed name="Revoke" of={name} text={REVOKED} act={revoke} />
    </Row>
  );
}
