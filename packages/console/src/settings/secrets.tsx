import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, bodyOf, by } from '../api/client.js';
import { Confirmed } from '../ui/actions.js';
import { type Fields, Form, given, TextField } from '../ui/form.js';
import { Row, Rows, Section } from '../ui/blocks.js';

export const secretsQuery = queryOptions({
  queryKey: ['secrets'],
  queryFn: async () => (await bodyOf(api.GET('/api/v1/secrets/search', by({ limit: 100 })))).items,
});

async function save(field: Fields) {
  const [name, value] = [field('name'), field('value')];
  const hosts = field('hosts')
    .split(',')
    .filter((host) => host.trim());
  const body = { name, value, ...given({ description: field('description') }), ...(hosts.length && { hosts }) };
  const { warning = '' } = await bodyOf(api.POST('/api/v1/secrets', { body }));
  return `${name} is stored. ${warning}`;
}

function remove(name: string) {
  return bodyOf(api.DELETE('/api/v1/secrets/{secret_id}', { params: { path: { secret_id: name } } }));
}

const SHARED = 'Provided by your organization. One of your own of that name takes its place.';
export function Secrets() {
  return (
    <Section title="Secrets" lead="Environment variables for your agents' tools. A value cannot be read back.">
      <Rows query={useQuery(secretsQuery)} name="secrets" empty="No secret is stored.">
        {({ name, description, hosts, scope }) => (
          <Row
            key={name}
            title={<code>{name}</code>}
            facts={scope === 'user' ? [description, hosts?.join(', ')] : SHARED}>
            {scope === 'user' && (
              <Confirmed name="Delete" of={name} text="Its value is deleted for good." act={() => remove(name)} />
            )}
          </Row>
        )}
      </Rows>
      <Form name="Secret" submit="Save" onSubmit={save}>
        <div className="columns">
          <TextField label="Name" required placeholder="NPM_TOKEN" autoComplete="off" />
          <TextField label="Value" type="password" required />
        </div>
        <TextField label="Description" hint="Optional; your agents see it" />
        <TextField label="Hosts" hint="Optional, with commas. Without hosts, sandboxes have the value in clear" />
      </Form>
    </Section>
  );
}
