import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { operationsOf } from '@slipway/api/openapi/operations.js';
import { AuditClient } from '../support/audit-client.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { startGitHosts, type GitHosts } from '../support/git-hosts.js';
import { committedDocument } from '../support/resolved-document.js';
import { AUDITED_OPERATIONS, NOT_AUDITED } from './audited-operations.js';
import { AuditedScene, PLANTED } from './audited-scene.js';

describe('operations that change something', () => {
  let hosts: GitHosts;
  let app: TestApp;
  let audit: AuditClient;
  let scene: AuditedScene;

  beforeAll(async () => {
    hosts = await startGitHosts();
    app = await createTestApp(hosts.environment);
    audit = new AuditClient(app);
  });

  beforeEach(async () => {
    scene = await AuditedScene.make(app, hosts);
  });

  afterEach(async () => {
    await scene.agent.close();
  });

  afterAll(async () => {
    await app.close();
    await hosts.close();
  });

  it('are all listed in audited-operations.ts: as audited, or as not audited with the reason', () => {
    const listed = [...Object.keys(AUDITED_OPERATIONS), ...Object.keys(NOT_AUDITED)];
    const changing = operationsOf(committedDocument()).filter(({ name }) => !name.startsWith('GET '));

    expect(new Set(listed)).toEqual(new Set(changing.map(({ operation }) => operation.operationId)));
    expect(listed).toHaveLength(changing.length);
  });

  it.each(Object.keys(AUDITED_OPERATIONS))(
    '%s leaves its entries, and changes nothing without',
    async (name) => {
      const operation = AUDITED_OPERATIONS[name];
      const sent = operation?.request(scene, app.admin) ?? { method: 'POST', path: '/' };
      const by = sent.as ?? scene.user;

      const before = await scene.state();
      const refused = await audit.whileFull(() => scene.send(sent));
      expect([refused.status, refused.text]).toEqual([500, expect.any(String)]);
      expect(await scene.state()).toEqual(before);
      expect(await audit.find({ caller_request_id: refused.id })).toEqual([]);

      const [{ id, status, text }] = await Promise.all([
        scene.send(operation?.request(scene, app.admin) ?? sent),
        operation?.meanwhile?.(scene),
      ]);
      expect([200, 201, 204].includes(status) ? 'done' : text).toBe('done');
      const entries = await audit.find({ caller_request_id: id });
      expect(entries.map(({ action }) => action).toSorted()).toEqual(operation?.actions.toSorted());
      for (const entry of entries) {
        expect(entry).toMatchObject({ caller_request_id: id, client_address: '127.0.0.1' });
        expect(entry.actor.kind).toBe(by === scene.user || by === app.admin ? 'user' : 'sandbox');
        expect(entry.actor.user_id).toBe(by === app.admin ? app.admin.id : scene.user.id);
        expect(entry.actor.key_id).toMatch(/^[0-9A-Za-z]+$/);
      }
    },
  );

  it('leave no value in the table', async () => {
    const values = [...Object.values(PLANTED), ...Object.values(hosts.worlds).map(({ token }) => token)];
    const [row] = await app.dataSource.query<{ text: string }[]>(
      'SELECT string_agg(e::text, chr(10)) AS text FROM audit_entries e',
    );
    const text = row?.text ?? '';

    expect(text).toContain('DEPLOY_TOKEN');
    expect(values.filter((value) => text.includes(value))).toEqual([]);
  });
});
