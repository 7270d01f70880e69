import { beforeAll, describe, expect, it } from '@jest/globals';
import type { SandboxPageDto } from '../../src/v1/sandboxes/api/sandbox.dto.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { AuditClient } from '../support/audit-client.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { useTestApp } from '../support/use-test-app.js';

describe('administrators and the sandboxes of all users', () => {
  const backend = new ScriptedSandboxBackend();
  const app = useTestApp({}, { sandboxBackend: backend });
  let admin: SandboxesClient;
  let owner: SandboxesClient;
  let other: SandboxesClient;

  beforeAll(async () => {
    admin = new SandboxesClient(app.url, app.admin);
    owner = new SandboxesClient(app.url, app.user);
    other = new SandboxesClient(app.url, await app.createUser());
  });

  it('see them with owner and state, page by page, but not what opens them', async () => {
    const [mine, theirs] = [await admin.running(), await owner.running()];
    const first = await admin.call<SandboxPageDto>('GET', '/search?all=true&limit=1');
    const second = await admin.call<SandboxPageDto>(
      'GET',
      `/search?all=true&limit=1&page_id=${encodeURIComponent(first.body.next_page_id ?? '')}`,
    );

    const closed = Object.assign(theirs, { session_api_key: null, exposed_urls: null });
    expect(first.body.items).toEqual([closed]);
    expect(second.body.items).toEqual([mine]);
    expect(second.body.next_page_id).toBeNull();
    expect((await admin.call<SandboxPageDto>('GET', '/search')).body.items).toEqual([mine]);
    expect((await admin.call('GET', `?id=${theirs.id}`)).body).toEqual([null]);
    const wrongList = `/search?page_id=${encodeURIComponent(first.body.next_page_id ?? '')}`;
    expect((await admin.call('GET', wrongList)).status).toBe(422);
  });

  it('pause, resume and delete them, and the audit says who did', async () => {
    const { id } = await owner.running();
    expect(await admin.pause(id)).toBe(200);
    await owner.reach(id, 'PAUSED');
    expect(await admin.resume(id)).toBe(200);
    await owner.reach(id, 'RUNNING');
    expect((await admin.call('DELETE', `/${id}`)).status).toBe(200);
    await owner.reach(id, 'MISSING');

    const entries = await new AuditClient(app).find({ resource_id: id, actor_user_id: app.admin.id });
    expect(entries.map(({ action, owner_user_id: of }) => [action, of])).toEqual([
      ['sandbox.delete', app.user.id],
      ['sandbox.resume', app.user.id],
      ['sandbox.pause', app.user.id],
    ]);
    expect(await admin.pause(id)).toBe(404);
  });

  it('alone may', async () => {
    const refused = await other.call('GET', '/search?all=true');

    expect([refused.status, refused.body['detail']]).toEqual([
      403,
      'Only administrators may list the sandboxes of all users.',
    ]);
  });
});
