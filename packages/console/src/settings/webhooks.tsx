import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, at, bodyOf, bodyQuery, type Schemas } from '../api/client.js';
import { ActionButton, Confirmed, tell, useSecretOnce } from '../ui/actions.js';
import { type Fields, Form, TextField } from '../ui/form.js';
import { Ago, Badge, Button, Row, Rows, Section, Table } from '../ui/blocks.js';

const webhooksQuery = bodyQuery(['webhooks'], () => api.GET('/api/v1/webhook-endpoints'));
const LEAD =
  'Addresses that get an event when a conversation is ready, waits, finishes or opens a pull request, signed as Standard Webhooks.';
const SECRET = 'Your server checks signatures with it. It is shown only once.';

const HINT = 'It gets all events of your conversations from now on';
const URL_FIELD = { label: 'URL', placeholder: 'https://ci.example.com/hooks/slipway', hint: HINT };

export function Webhooks() {
  const [dialog, show] = useSecretOnce('Secret of the webhook', SECRET);
  const save = async (field: Fields) => {
    const made = await bodyOf(api.POST('/api/v1/webhook-endpoints', { body: { url: field('url') } }));
    show(made.secret);
    return 'Saved.';
  };
  return (
    <Section title="Webhooks" lead={LEAD}>
      <Rows query={useQuery(webhooksQuery)} name="webhooks" empty="No webhook is configured.">
        {(endpoint) => <Endpoint key={endpoint.id} endpoint={endpoint} />}
      </Rows>
      <Form name="Webhook" submit="Save" onSubmit={save}>
        <TextField {...URL_FIELD} type="url" required />
      </Form>
      {dialog}
    </Section>
  );
}

function Endpoint({ endpoint }: { endpoint: Schemas['WebhookEndpoint'] }) {
  const { id, url, enabled, disabled_reason: reason, events } = endpoint;
  const [isOpen, setOpen] = useState(false);
  const test = async () => {
    const sent = await bodyOf(api.POST('/api/v1/webhook-endpoints/{id}/test', at(id)));
    const answer = sent.last_error ?? `Its server answered ${sent.last_response_status}.`;
    tell(sent.status === 'delivered' ? 'The test has arrived' : 'The test has not arrived', answer);
  };
  const remove = () => bodyOf(api.DELETE('/api/v1/webhook-endpoints/{id}', at(id)));
  const state = enabled ? 'Enabled' : `Disabled${reason === null ? '' : `: ${reason}`}`;
  return (
    <Row
      title={url}
      facts={`${state}, ${events.includes('*') ? 'all events' : events.join(', ')}`}
      more={isOpen && <Deliveries id={id} />}>
      <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} text="Deliveries" />
      <ActionButton act={test} text="Send a test" />
      <Confirmed name="Delete" of={url} text="It gets no more events." act={remove} />
    </Row>
  );
}

const NONE = 'Nothing was sent in the last seven days.';
const COLUMNS = ['Event', 'State', 'Answer', 'When', ''];

function Deliveries({ id }: { id: string }) {
  const latest = { params: { path: { id }, query: { limit: 20 } } };
  const deliveries = useQuery({
    ...bodyQuery(['webhooks', id], () => api.GET('/api/v1/webhook-endpoints/{id}/deliveries', latest)),
    select: ({ items }) => items,
  });
  const again = (delivery: string) => {
    const params = { path: { id, delivery_id: delivery } };
    return bodyOf(api.POST('/api/v1/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver', { params }));
  };
  return (
    <Table query={deliveries} name="deliveries" empty={NONE} columns={COLUMNS}>
      {(delivery) => [
        <code>{delivery.event_type}</code>,
        <Badge state={delivery.status} />,
        delivery.last_error ?? delivery.last_response_status,
        <Ago time={delivery.created_at} />,
        <ActionButton look="link" act={() => again(delivery.id)} text="Send again" />,
      ]}
    </Table>
  );
}
