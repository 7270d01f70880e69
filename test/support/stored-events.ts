import type { DataSource } from 'typeorm';
import { eventSchema } from '@slipway/agent-protocol/event-schemas.js';

const KNOWN_KINDS = eventSchema.options.map(({ shape }) => shape.kind.value);

/** @throws Error where stored events of known kinds differ from what the document says of them */
export async function requireDocumentedEvents(dataSource: DataSource): Promise<void> {
  const rows = await dataSource.query<{ body: unknown }[]>(
    'SELECT body FROM conversation_events WHERE kind = ANY($1)',
    [KNOWN_KINDS],
  );
  for (const { body } of rows) {
    eventSchema.parse(body);
  }
}
