import { useQuery } from '@tanstack/react-query';
import { api, at, bodyOf } from '../api/client.js';
import { Confirmed, useSecretOnce } from '../ui/actions.js';
import { Row, Rows, Section } from '../ui/blocks.js';
import { type Fields, Form, SelectField, TextField, useFilter } from '../ui/form.js';
import { sourceName, SOURCES, sourcesQuery } from './automation-queries.js';

const LEAD = 'Webhooks by which git hosts, and servers of your own, tell what has happened.';
const OWN =
  'It signs with HMAC-SHA256 in X-Signature-256, and names its event in the member type; the API takes other ways.';
const ROTATION = 'The old secret ends at once: events are refused until the host has the new one.';
const REFUSED = 'Its events are refused from now on.';
const SECRET = 'The host signs its events with it. It is shown this once.';
const OLD = [sourcesQuery.queryKey];

const remove = (id: string) => bodyOf(api.DELETE('/api/automation/v1/webhooks/{id}', at(id)));

export function Sources() {
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
            <Confirmed name="Rotate secret" of={name} text={ROTATION} act={() => rotate(id)} old={OLD} />
            <Confirmed name="Delete" of={name} text={REFUSED} act={() => remove(id)} old={OLD} />
          </Row>
        )}
      </Rows>
      <Form name="Source" submit="Create webhook" onSubmit={create} old={OLD}>
        <SelectField
          label="Source"
          options={[...Object.entries(SOURCES), ['', 'A server of your own']]}
          {...bind('source')}
        />
        {source === '' && <TextField label="Name" required pattern="[a-z0-9_\-]+" placeholder="ci" hint={OWN} />}
      </Form>
      {dialog}
    </Section>
  );
}
