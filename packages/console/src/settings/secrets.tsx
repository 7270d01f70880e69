import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, bodyOf, by, type Schemas } from '../api/client.js';
import { Confirmed } from '../ui/actions.js';
import { type Fields, Form, given, INHERITED, SelectField, TextField } from '../ui/form.js';
import { Row, Rows, Section } from '../ui/blocks.js';

export const secretsQuery = queryOptions({
  queryKey: ['secrets'],
  queryFn: async () => (await bodyOf(api.GET('/api/v1/secrets/search', by({ limit: 100 })))).items,
});

function save(body: Schemas['CreateOrganizationSecret']) {
  return bodyOf(api.POST('/api/v1/secrets', { body }));
}

function remove(name: string) {
  return bodyOf(api.DELETE('/api/v1/secrets/{secret_id}', { params: { path: { secret_id: name } } }));
}

const LEAD = "Environment variables for your agents' tools. A value cannot be read back.";

export function Secrets() {
  return (
    <Section title="Secrets" lead={LEAD}>
      <Rows query={useQuery(secretsQuery)} name="secrets" empty="No secret is stored.">
        {({ name, description, hosts, phase, scope }) => (
          <Row
            key={name}
            title={<code>{name}</code>}
            facts={[description, hosts?.join(', '), phase && SETUP, scope === 'organization' && INHERITED]}>
            {scope === 'user' && <DeleteSecret name={name} act={() => remove(name)} />}
          </Row>
        )}
      </Rows>
      <SecretForm name="Secret" store={save} clear="Without hosts, sandboxes have the value in clear" />
    </Section>
  );
}

export function DeleteSecret({ name, act }: { name: string; act: () => Promise<unknown> }) {
  return <Confirmed name="Delete" of={name} text="Its value is deleted for good." act={act} />;
}

export const SETUP = 'For setup scripts alone';
/** The empty one changes nothing of a stored secret. */
const READERS = [
  ['', 'Agents'],
  ['setup', 'Setup scripts alone'],
] as const;

interface SecretFormProps {
  name: string;
  store: (body: Schemas['CreateOrganizationSecret']) => Promise<{ warning?: string }>;
  /** What a secret without hosts means. */
  clear: string;
}

export function SecretForm({ name: form, store, clear }: SecretFormProps) {
  const send = async (field: Fields) => {
    const [name, value] = [field('name'), field('value')];
    const hosts = field('hosts')
      .split(',')
      .filter((host) => host.trim());
    const more = {
      ...given({ description: field('description') }),
      ...(field('for') === 'setup' && { phase: 'setup' as const }),
      ...(hosts.length && { hosts }),
    };
    const body = { name, value, ...more };
    const { warning = '' } = await store(body);
    return `${name} is stored. ${warning}`;
  };
  return (
    <Form name={form} submit="Save" onSubmit={send}>
      <div className="columns">
        <TextField label="Name" required placeholder="NPM_TOKEN" autoComplete="off" />
        <TextField label="Value" type="password" required />
      </div>
      <div className="columns">
        <TextField label="Description" hint="Optional; your agents see it" />
        <SelectField label="For" member="phase" options={READERS} hint="Setup scripts are .openhands/setup.sh" />
      </div>
      <TextField label="Hosts" hint={`Optional, with commas. ${clear}`} />
    </Form>
  );
}
