import { afterAll, describe, expect, it } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import { unzipSync } from 'fflate';
import { ConversationExport } from '../../src/v1/app-conversations/conversation-export.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { requireDocumentedEvents } from '../support/stored-events.js';
import { useTestApp } from '../support/use-test-app.js';

afterAll(() => requireDocumentedEvents(app.dataSource));
const app = useTestApp();
const rows = new ConversationRows(app);

/** Status, headers, and the files of the archive as texts. */
async function download(id: string, user: TestUser = app.user) {
  const response = await fetch(`${app.url}/api/v1/app-conversations/${id}/download`, {
    headers: user.headers,
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const files = response.ok ? unzipSync(bytes) : {};
  return {
    status: response.status,
    headers: response.headers,
    files: Object.fromEntries(
      Object.entries(files).map(([name, data]) => [name, Buffer.from(data).toString()]),
    ),
  };
}

async function conversationWith(events: object[]): Promise<string> {
  const sandbox = await rows.sandbox(app.user.id, {
    key: `key-of-the-sandbox-${randomUUID()}`,
    address: 'http://127.0.0.1:1',
  });
  const { id, hex } = await rows.conversation(app.user.id, { sandboxId: sandbox.id, title: 'Parser' });
  await store(id, events);
  return hex;
}

async function store(id: string, events: object[]): Promise<void> {
  await app.dataSource.query(
    `WITH log AS (
       UPDATE followed_conversations SET event_count = event_count + $3 WHERE id = $1 RETURNING event_count - $3 AS before)
     INSERT INTO conversation_events (conversation_id, seq, event_id, kind, occurred_at, body)
     SELECT $1, before + (row_number() OVER ())::int, body->>'id', body->>'kind', now(), body
     FROM log, jsonb_array_elements($2::jsonb) AS body`,
    [id, JSON.stringify(events), events.length],
  );
}

describe('the download of a conversation', () => {
  it('has the conversation and all its events in order, but no key', async () => {
    const events = Array.from({ length: 230 }, (_, index) =>
      messageEvent(`e-${index}`, 'agent', `${index} äöü `.repeat(index)),
    );
    const id = await conversationWith(events);

    const { status, headers, files } = await download(id);

    expect([status, headers.get('content-type'), headers.get('content-disposition')]).toEqual([
      200,
      'application/zip',
      'attachment; filename="conversation.zip"',
    ]);
    const { 'meta.json': meta = '', ...others } = files;
    expect(JSON.parse(meta)).toMatchObject({ id, title: 'Parser', sandbox_status: 'RUNNING' });
    expect(meta).not.toContain('key-of-the-sandbox');
    expect(Object.keys(others)).toEqual(
      events.map(({ id: eventId }, index) => `event_${String(index).padStart(6, '0')}_${eventId}.json`),
    );
    expect(Object.values(others).map((text) => JSON.parse(text))).toEqual(events);
  });

  it('has what there was when it was asked for, however slowly it is read', async () => {
    const said = (): object => messageEvent(randomUUID(), 'agent', randomBytes(4_000).toString('base64'));
    const id = await conversationWith(Array.from({ length: 150 }, said));
    const archive = await app.app.get(ConversationExport).archive(app.user.id, id);
    const chunks = archive.iterator();
    const { value: first } = await chunks.next();
    await store(id, [said()]);

    const read: Buffer[] = [first];
    for await (const chunk of chunks) {
      read.push(chunk);
    }

    const names = Object.keys(unzipSync(Buffer.concat(read)));
    expect(names.filter((name) => name.startsWith('event_'))).toHaveLength(150);
  });
});
