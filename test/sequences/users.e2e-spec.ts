import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import assert from 'node:assert/strict';
import { jsonAt } from '@slipway/common/json-access.js';
import type { TestUser } from '../support/create-test-app.js';
import { failedSequence, step } from '../support/sequences.js';
import { SettingsClient } from '../support/settings-client.js';
import { useTestApp } from '../support/use-test-app.js';

interface Key {
  text: string;
  expiresAt: number | null;
  isRevoked: boolean;
}

/** What one user has. */
interface UserModel {
  settings: { language: string; max_iterations: number | null; git_user_name: string | null } | null;
  hasModelKey: boolean;
  secrets: Map<string, { value: string; description: string | null }>;
  keys: Map<string, Key>;
}

interface Model {
  users: [UserModel, UserModel];
}

interface Real {
  users: [TestUser, TestUser];
}

type Who = 0 | 1;

const MINUTE_MS = 60_000;

const app = useTestApp();

const who = fc.constantFrom<Who[]>(0, 1);
const secretName = fc.constantFrom('A', 'B', 'C_1');
const text = fc.string({ maxLength: 12 }).map((value) => value.replaceAll('\0', ''));
const optionalText = fc.option(text, { nil: null });

async function call(
  user: { headers: Record<string, string> },
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${app.url}${path}`, {
    method,
    headers: { ...user.headers, ...(body && { 'Content-Type': 'application/json' }) },
    body: body && JSON.stringify(body),
  });
  const answer = await response.text();
  return { status: response.status, body: answer === '' ? null : JSON.parse(answer) };
}

async function begin(): Promise<{ model: Model; real: Real }> {
  const newcomer = (): UserModel => ({
    settings: null,
    hasModelKey: false,
    secrets: new Map(),
    keys: new Map(),
  });
  return {
    model: { users: [newcomer(), newcomer()] },
    real: { users: [await app.createUser(), await app.createUser()] },
  };
}

const createSecret = step(
  'create secret',
  fc.tuple(who, secretName, text, optionalText),
  async ({ users }: Model, real: Real, at, name, value, description) => {
    const { secrets } = users[at];
    const { status } = await call(real.users[at], 'POST', '/api/secrets', { name, value, description });
    assert.equal(status, secrets.has(name) ? 400 : 201);
    if (!secrets.has(name)) {
      secrets.set(name, { value, description });
    }
  },
);

const changeSecret = step(
  'change secret',
  fc.tuple(who, secretName, secretName, optionalText, fc.option(optionalText, { nil: undefined })),
  async ({ users }: Model, real: Real, at, name, newName, value, description) => {
    const { secrets } = users[at];
    const body = { name: newName, value, description };
    const { status } = await call(real.users[at], 'PUT', `/api/secrets/${name}`, body);
    const old = secrets.get(name);
    assert.equal(status, old === undefined ? 404 : newName !== name && secrets.has(newName) ? 400 : 200);
    if (old !== undefined && status === 200) {
      secrets.delete(name);
      secrets.set(newName, {
        value: value ?? old.value,
        description: description === undefined ? old.description : description,
      });
    }
  },
);

const removeSecret = step(
  'remove secret',
  fc.tuple(who, secretName),
  async ({ users }: Model, real: Real, at, name) => {
    const { status } = await call(real.users[at], 'DELETE', `/api/secrets/${name}`);
    assert.equal(status, users[at].secrets.delete(name) ? 200 : 404);
  },
);

const lookAtSecrets = step('look at secrets', fc.tuple(who), async ({ users }: Model, real: Real, at) => {
  const wanted = [...users[at].secrets]
    .map(([name, { value, description }]) => ({ name, value, description }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const { body } = await call(real.users[at], 'GET', '/api/secrets');
  assert.deepEqual(body, { custom_secrets: wanted.map(({ name, description }) => ({ name, description })) });
  assert.deepEqual(await new SettingsClient(app, real.users[at]).customSecrets(), wanted);
});

const storeSettings = step(
  'store settings',
  fc.tuple(
    who,
    fc.record(
      {
        language: fc.constantFrom('en', 'de', 'ja'),
        max_iterations: fc.option(fc.integer({ min: 1, max: 2_147_483_647 }), { nil: null }),
        git_user_name: fc.option(fc.constantFrom('Ada', 'Grace'), { nil: null }),
        llm_api_key: fc.constantFrom('sk-1', null, '', '**********'),
      },
      { requiredKeys: ['language'] },
    ),
  ),
  async ({ users }: Model, real: Real, at, { llm_api_key: modelKey, ...members }) => {
    const user = users[at];
    const body = { ...members, ...(modelKey !== undefined && { llm_api_key: modelKey }) };
    const { status } = await call(real.users[at], 'POST', '/api/settings', body);
    assert.equal(status, 200);
    user.settings = { ...(user.settings ?? { max_iterations: null, git_user_name: null }), ...members };
    user.hasModelKey = modelKey === 'sk-1' || (user.hasModelKey && modelKey !== '');
  },
);

const lookAtSettings = step('look at settings', fc.tuple(who), async ({ users }: Model, real: Real, at) => {
  const { settings, hasModelKey } = users[at];
  const { status, body } = await call(real.users[at], 'GET', '/api/settings');
  assert.equal(status, settings === null ? 404 : 200);
  if (settings !== null) {
    const wanted = { ...settings, llm_api_key_set: hasModelKey };
    const shown = Object.fromEntries(Object.keys(wanted).map((name) => [name, jsonAt(body, name)]));
    assert.deepEqual(shown, wanted);
  }
});

const issueKey = step(
  'issue key',
  fc.tuple(who, fc.option(fc.integer({ min: 1, max: 30 }), { nil: null })),
  async ({ users }: Model, real: Real, at, minutes) => {
    const expiresAt = minutes === null ? null : app.clock.now() + minutes * MINUTE_MS;
    const { status, body } = await call(real.users[at], 'POST', '/api/v1/api-keys', {
      name: 'sequence',
      ...(expiresAt !== null && { expires_at: new Date(expiresAt).toISOString() }),
    });
    assert.equal(status, 201);
    const { id, key } = body as { id: string; key: string };
    users[at].keys.set(id, { text: key, expiresAt, isRevoked: false });
  },
);

const revokeKey = step(
  'revoke key',
  fc.tuple(who, fc.nat(7)),
  async ({ users }: Model, real: Real, at, pick) => {
    const keys = users.flatMap((user, owner) => [...user.keys].map(([id, key]) => ({ id, key, owner })));
    const chosen = keys[pick % Math.max(keys.length, 1)];
    const { status } = await call(real.users[at], 'DELETE', `/api/v1/api-keys/${chosen?.id ?? 'AAAAAAAA'}`);
    assert.equal(status, chosen?.owner === at ? 204 : 404);
    if (chosen?.owner === at) {
      chosen.key.isRevoked = true;
    }
  },
);

const useKeys = step('use keys', fc.tuple(who), async ({ users }: Model, _real: Real, at) => {
  const keys = [...users[at].keys.values()];
  const used = await Promise.all(
    keys.map(async ({ text: key }) => call({ headers: { 'X-Session-API-Key': key } }, 'GET', '/api/secrets')),
  );
  const isValid = ({ isRevoked, expiresAt }: Key): boolean =>
    !isRevoked && (expiresAt === null || expiresAt > app.clock.now());
  assert.deepEqual(
    used.map(({ status }) => status),
    keys.map((key) => (isValid(key) ? 200 : 401)),
  );
});

const letTimePass = step(
  'let time pass',
  fc.tuple(fc.integer({ min: 1, max: 20 })),
  async (_model, _real, minutes) => {
    // Half a minute more, so that no key expires in this very moment.
    app.clock.advance((minutes + 0.5) * MINUTE_MS);
  },
);

describe('any sequence of requests of two users', () => {
  const options = { sequences: 12, length: 30 };

  it('leaves the secrets that the model has', async () => {
    const steps = [createSecret, changeSecret, removeSecret, lookAtSecrets];

    expect(await failedSequence<Model, Real>(steps, begin, options)).toBeNull();
  });

  it('leaves the settings that the model has, beside secrets', async () => {
    const steps = [storeSettings, lookAtSettings, createSecret, lookAtSecrets];

    expect(await failedSequence<Model, Real>(steps, begin, options)).toBeNull();
  });

  it('opens the service to exactly those API keys that the model says are valid', async () => {
    const steps = [issueKey, revokeKey, useKeys, letTimePass];

    expect(await failedSequence<Model, Real>(steps, begin, options)).toBeNull();
  });
});
