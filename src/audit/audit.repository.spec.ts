import { describe, expect, it } from '@jest/globals';
import { runInRequestContext } from '@slipway/api/requests/request-context.js';
import { AuditRepository, type NewAuditEntry } from './audit.repository.js';

const ENTRY: NewAuditEntry = { action: 'secret.create', resourceId: 'TOKEN', ownerId: null };
const OWNER = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';

function row(entry: Partial<NewAuditEntry> = {}, outside: 'service' | 'operator' = 'service'): unknown {
  const [first]: unknown[] = JSON.parse(new AuditRepository(outside).record({ ...ENTRY, ...entry }));
  return first;
}

describe('AuditRepository', () => {
  it.each([
    ['a user', { userId: OWNER, caller: OWNER, keyId: '4nKxq0Zt' }, {}, ['user', OWNER, '4nKxq0Zt']],
    ['a sandbox', { userId: OWNER, caller: 'box' }, {}, ['sandbox', OWNER, 'box']],
    ['nobody yet', {}, {}, ['service', null, null]],
    [
      'a user, for reasons of the service',
      { userId: OWNER, caller: OWNER, keyId: '4nKxq0Zt' },
      { by: 'service' as const },
      ['service', null, null],
    ],
  ])('knows who acts in a request of %s', (_name, context, entry, [kind, userId, keyId]) => {
    const request = { requestId: 'request-1', callerRequestId: 'given', address: '10.0.3.17', ...context };

    expect(runInRequestContext(request, () => row(entry))).toMatchObject({
      actor_kind: kind,
      actor_user_id: userId,
      actor_key_id: keyId,
      request_id: 'request-1',
      caller_request_id: 'given',
      client_address: '10.0.3.17',
    });
  });

  it.each(['service', 'operator'] as const)('takes the %s for who acts outside of requests', (kind) => {
    expect(row({}, kind)).toMatchObject({ actor_kind: kind, actor_user_id: null, request_id: null });
  });

  it('cuts names and lists, and keeps what PostgreSQL can hold', () => {
    const members = Array.from({ length: 101 }, (_, index) => `member_${index}`);

    expect(
      row({
        resourceId: `\0\ud800${'x'.repeat(1000)}`,
        details: { members, text: 'y'.repeat(600), count: 1 },
      }),
    ).toMatchObject({
      resource_id: `\u{fffd}\u{fffd}${'x'.repeat(510)}`,
      details: { members: members.slice(0, 100), members_count: 101, text: 'y'.repeat(512), count: 1 },
    });
  });
});
