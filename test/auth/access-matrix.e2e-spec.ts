import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NO_KEY } from '../../src/common/errors/domain-error.js';
import { ApiKeysService } from '../../src/auth/api-keys.service.js';
import { NO_CSRF_TOKEN } from '../../src/auth/request-authenticator.js';
import { type Operation, operationsOf } from '@slipway/api/openapi/operations.js';
import { type Scope, SCOPES } from '../../src/common/scopes.js';
import { noSandboxKey } from '../../src/v1/sandboxes/sandbox-key.guard.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { addressOf, committedDocument, resolvedDocument } from '../support/resolved-document.js';
import { type JsonSchema, schemaProblems } from '../support/schema-problems.js';
import { type Answer, withUnfinishedBody } from '../support/unfinished-body.js';

/** What needs neither a key nor a session, and what it answers to a request without a body. */
const OPEN: Record<string, number> = {
  'GET /alive': 200,
  'GET /api/automation/health': 200,
  'GET /api/automation/ready': 200,
  'GET /api/automation/sdk-version': 200,
  'GET /api/automation/server_info': 200,
  // Hosts have no key: they are refused for their signature.
  'POST /api/automation/v1/events/{org_id}/{source}': 401,
  'GET /api/options/config': 200,
  'GET /api/v1/web-client/config': 200,
  'POST /auth/backchannel-logout': 422,
  'POST /auth/code': 422,
  'POST /auth/code/key': 422,
  'POST /auth/key': 422,
  'POST /auth/link': 422,
  // No issuer is configured here.
  'GET /auth/login': 404,
  'POST /auth/logout': 204,
  'GET /auth/session': 200,
  'GET /health': 200,
  'GET /health/live': 200,
  'GET /health/ready': 200,
  'POST /oauth/device/authorize': 200,
  'POST /oauth/device/token': 400,
  'GET /ready': 200,
  'GET /server_info': 200,
};
/** Only sandboxes ask, which have keys of their own and no sessions. */
const FOR_SANDBOXES = [
  'GET /api/v1/sandboxes/{sandbox_id}/settings/secrets',
  'GET /api/v1/sandboxes/{sandbox_id}/settings/secrets/{secret_name}',
  'POST /api/v1/webhooks/conversations',
  'POST /api/v1/webhooks/events/{id}',
  'POST /api/v1/webhooks/pull-requests',
  'POST /api/v1/webhooks/pull-requests/push',
];
const FOR_ADMINISTRATORS = [
  'GET /api/organizations/{organization_id}/conversations',
  'GET /api/organizations/{organization_id}/conversations/stats',
  'POST /api/organizations/{organization_id}/conversations/{conversation_id}/stop',
  'DELETE /api/organizations/{organization_id}/members/{user_id}',
  'PATCH /api/organizations/{organization_id}/members/{user_id}',
  'GET /api/v1/audit',
  'GET /api/v1/diagnostics',
  'GET /api/v1/users',
  'POST /api/v1/users',
  'DELETE /api/v1/users/{id}',
  'PATCH /api/v1/users/{id}',
  'POST /api/v1/users/{id}/disable',
  'POST /api/v1/users/{id}/enable',
  'POST /api/v1/users/{id}/restore',
];
const ADMINISTRATORS_ONLY = 'Only administrators may do this.';
const UNKNOWN_KEY = `slw_AAAAAAAA_${'A'.repeat(43)}`;
const ANY_ID = '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f';

const document = resolvedDocument(committedDocument());
const operations = operationsOf(document);
const schemas = document.components?.schemas as Record<string, JsonSchema>;

type Headers = Record<string, string>;
const NO_USER = `401 unauthorized ${NO_KEY}`;
const NO_SANDBOX = `401 unauthorized ${noSandboxKey().message}`;
const NO_TOKEN = `403 forbidden ${NO_CSRF_TOKEN}`;
const NO_ADMINISTRATOR = `403 forbidden ${ADMINISTRATORS_ONLY}`;

let app: TestApp;
/** Everybody who may ask, with what they send. */
let callers: Record<'nobody' | 'unknown' | 'unknownBearer' | 'user' | 'admin', Headers>;
/** Keys of the administrator, and a session that was begun with each, that may do one thing; and a viewer, who only reads. */
let limited: { scope: Scope; headers: Headers }[];
let sessions: Record<'withoutToken' | 'withTokenOfAnother' | 'withEmptyToken', Headers>;

beforeAll(async () => {
  app = await createTestApp();
  callers = {
    nobody: {},
    unknown: { 'X-Session-API-Key': UNKNOWN_KEY },
    unknownBearer: { Authorization: `Bearer ${UNKNOWN_KEY}` },
    user: app.user.headers,
    admin: app.admin.headers,
  };
  const [{ cookie }, { token }] = [await signIn(app.user), await signIn(app.user)];
  sessions = {
    withoutToken: { Cookie: cookie },
    withTokenOfAnother: { Cookie: cookie, 'X-CSRF-Token': token },
    withEmptyToken: { Cookie: cookie, 'X-CSRF-Token': '' },
  };
  const viewer = await app.createUser();
  await app.dataSource.query('UPDATE users SET reads_only = true WHERE id = $1', [viewer.id]);
  limited = [{ scope: 'read', headers: viewer.headers }];
  for (const scope of SCOPES) {
    const { key } = await app.app
      .get(ApiKeysService)
      .issue({ userId: app.admin.id, name: scope, expiresAt: null, scopes: [scope] });
    const session = await signIn({ key });
    limited.push(
      { scope, headers: { 'X-Session-API-Key': key } },
      { scope, headers: { Cookie: session.cookie, 'X-CSRF-Token': session.token } },
    );
  }
});

afterAll(() => app.close());

describe('openapi.json', () => {
  it('opens to everybody, to sandboxes and to administrators alone what is listed here, and the rest to users', () => {
    const named = (of: (operation: Operation) => boolean): string[] =>
      operations.filter(({ operation }) => of(operation)).map(({ name }) => name);
    const users = [{ APIKeyHeader: [] }, { SessionCookie: [] }];

    expect(named(({ security }) => security === undefined)).toEqual(Object.keys(OPEN));
    expect(named(({ security }) => security?.length === 1)).toEqual(FOR_SANDBOXES);
    expect(named(isForAdministrators)).toEqual(FOR_ADMINISTRATORS);
    for (const { name, operation } of operations.filter(({ name }) => !(name in OPEN))) {
      expect([name, operation.security]).toEqual([
        name,
        FOR_SANDBOXES.includes(name) ? [{ APIKeyHeader: [] }] : users,
      ]);
    }
  });
});

const open = operations.filter(({ name }) => name in OPEN);
const closed = operations.filter(({ name }) => !(name in OPEN));

describe('an open operation', () => {
  it.each(open)('$name answers whoever asks', async ({ name }) => {
    const answers = [await ask(name, callers.nobody), await ask(name, callers.unknown)];

    expect(answers.map(({ status }) => status)).toEqual([OPEN[name], OPEN[name]]);
  });
});

describe('a closed operation', () => {
  it.each(closed)(
    '$name refuses whoever may not ask, before a body has arrived',
    async ({ name, operation }) => {
      const isChange = !name.startsWith('GET ');
      const isForSandboxes = FOR_SANDBOXES.includes(name);
      const stranger = isForSandboxes ? NO_SANDBOX : NO_USER;
      const byKey = isForSandboxes ? NO_SANDBOX : FOR_ADMINISTRATORS.includes(name) ? NO_ADMINISTRATOR : null;
      const bySession = isChange && !isForSandboxes ? NO_TOKEN : byKey;
      const expected: [who: Headers, verdict: string | null][] = [
        [callers.nobody, stranger],
        [callers.unknown, stranger],
        [callers.unknownBearer, stranger],
        [callers.user, byKey],
        [callers.admin, isForSandboxes ? NO_SANDBOX : null],
        ...Object.values(sessions).map((who): [Headers, string | null] => [who, bySession]),
      ];
      for (const [who, verdict] of expected) {
        const isRefusedChange = isChange && verdict !== null;
        const answer = isRefusedChange ? await askUnfinished(name, who) : await ask(name, who);

        expect([who, verdictOf(answer)]).toEqual([who, verdict]);
        if (verdict !== null && verdict !== NO_TOKEN) {
          expect(documentProblems(operation, answer)).toEqual([]);
        }
      }
    },
  );
});

describe('a scope', () => {
  it('is named by each operation, and by the open ones as none', () => {
    for (const { name, operation } of operations) {
      const isOpen = name in OPEN || FOR_SANDBOXES.includes(name);
      expect([name, scopeIn(operation)]).toEqual([
        name,
        isOpen ? 'none' : expect.stringMatching(new RegExp(`^(?:${SCOPES.join('|')})$`)),
      ]);
    }
  });

  it.each(closed.filter(({ name }) => !FOR_SANDBOXES.includes(name)))(
    '$name needs the one that is documented, of a key as of a session',
    async ({ name, operation }) => {
      const needed = scopeIn(operation);
      for (const { scope, headers } of limited) {
        const answer = await ask(name, headers);
        if (scope === needed) {
          expect([scope, missingScope(answer), verdictOf(answer)]).toEqual([scope, null, null]);
        } else {
          expect([scope, missingScope(answer)]).toEqual([scope, needed]);
          expect(documentProblems(operation, answer)).toEqual([]);
        }
      }
    },
  );

  it.each([
    ['DELETE', '/API/V1/Api-Keys/x', {}, 'settings'],
    ['DELETE', '/api/v1/api-keys/x/', {}, 'settings'],
    ['DELETE', '/api/v1/api-keys/x?_method=GET', { 'X-HTTP-Method-Override': 'GET' }, 'settings'],
    // No route is at this address.
    ['POST', '/api/v1/%61pi-keys', { 'X-HTTP-Method': 'GET' }, null],
    ['POST', '/api/v1/users/me/', { 'X-Original-URL': '/api/v1/settings' }, null],
    ['HEAD', '/api/v1/audit', {}, 'admin'],
    ['GET', '/api/v1/users/me%2F..%2F..%2Faudit', {}, null],
    ['POST', '/api/automation/v1/me/Dispatch', {}, 'run'],
    ['POST', '/MCP/', {}, 'run'],
  ])('%s %s is what the router makes of it', async (method, path, more, needed) => {
    const reading = limited.find(({ scope }) => scope === 'read');
    const response = await fetch(`${app.url}${path}`, { method, headers: { ...reading?.headers, ...more } });

    expect([response.status === 403, await scopeMissing(response, method)]).toEqual([
      needed !== null,
      method === 'HEAD' ? null : needed,
    ]);
  });
});

function scopeIn(operation: Operation): unknown {
  return Object(operation)['x-scope'];
}

async function scopeMissing(response: Response, method: string): Promise<unknown> {
  const body = await response.text();
  return method === 'HEAD' ? null : missingScope({ status: response.status, type: '', body });
}

/** Null where the caller was not refused for one. */
function missingScope({ status, body }: Answer): unknown {
  const { code, scope } = status === 403 ? Object(JSON.parse(body)) : {};
  return code === 'insufficient_scope' ? scope : null;
}

function isForAdministrators({ responses }: Operation): boolean {
  return JSON.stringify(responses['403'] ?? {}).includes(`"${ADMINISTRATORS_ONLY}"`);
}

async function signIn({ key }: Pick<TestUser, 'key'>): Promise<{ cookie: string; token: string }> {
  const response = await fetch(`${app.url}/auth/key`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ key }),
  });
  const { csrf_token: token } = (await response.json()) as { csrf_token: string };
  return { cookie: response.headers.getSetCookie()[0]?.split(';')[0] ?? '', token };
}

async function ask(name: string, headers: Headers): Promise<Answer> {
  const { method, path } = addressOf(name, ANY_ID, headers === callers.user ? app.user.id : app.admin.id);
  const response = await fetch(`${app.url}${path}`, { method, headers });
  const [type = ''] = (response.headers.get('content-type') ?? '').split(';');
  return { status: response.status, type, body: await response.text() };
}

async function askUnfinished(name: string, headers: Headers): Promise<Answer> {
  const { method, path } = addressOf(name, ANY_ID, headers === callers.user ? app.user.id : app.admin.id);
  return withUnfinishedBody(`${app.url}${path}`, method, headers, Buffer.from('{'));
}

/** How the caller was refused; null: for no reason that is theirs. */
function verdictOf({ status, body }: Answer): string | null {
  const { code, detail } = status === 401 || status === 403 ? Object(JSON.parse(body)) : {};
  return ['unauthorized', 'forbidden'].includes(code) ? `${status} ${code} ${detail}` : null;
}

function documentProblems(operation: Operation, { status, type, body }: Answer): string[] {
  const response = operation.responses[String(status)];
  const schema = response && 'content' in response ? response.content?.[type]?.schema : undefined;
  return schema ? schemaProblems(JSON.parse(body), schema as JsonSchema, schemas) : [`no ${status} ${type}`];
}
