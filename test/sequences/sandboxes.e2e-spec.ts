import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import assert from 'node:assert/strict';
import type { SandboxPageDto } from '../../src/v1/sandboxes/api/sandbox.dto.js';
import { ScriptedSandboxBackend } from '../fakes/scripted-sandbox-backend.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { failedSequence, step } from '../support/sequences.js';
import { useTestApp } from '../support/use-test-app.js';

type Who = 0 | 1;

interface Sandbox {
  id: string;
  owner: Who;
  status: 'RUNNING' | 'PAUSED';
}

interface Model {
  sandboxes: Sandbox[];
}

interface Real {
  users: [SandboxesClient, SandboxesClient];
}

const MOST_RUNNING = 2;
const UNKNOWN_ID = 'AAAAAAAAAAAAAAAAAAAAAA';

const backend = new ScriptedSandboxBackend();

const app = useTestApp(
  { MAX_RUNNING_SANDBOXES: String(MOST_RUNNING), SANDBOX_LIMIT_POLICY: 'reject' },
  { sandboxBackend: backend },
);

afterAll(async () => {
  await backend.close();
});

const who = fc.constantFrom<Who[]>(0, 1);
/** Whose sandbox, and which: often that of another user. */
const choice = fc.tuple(who, fc.nat(5));

function chosen({ sandboxes }: Model, pick: number): Sandbox | undefined {
  return sandboxes[pick % Math.max(sandboxes.length, 1)];
}

function hasRoom({ sandboxes }: Model, owner: Who): boolean {
  const running = sandboxes.filter((one) => one.owner === owner && one.status === 'RUNNING');
  return running.length < MOST_RUNNING;
}

async function begin(): Promise<{ model: Model; real: Real }> {
  const user = async () => new SandboxesClient(app.url, await app.createUser());
  return { model: { sandboxes: [] }, real: { users: [await user(), await user()] } };
}

const create = step('create', fc.tuple(who), async (model: Model, { users }: Real, owner) => {
  const room = hasRoom(model, owner);
  const { status, body } = await users[owner].call<{ id: string }>('POST', '');
  assert.equal(status, room ? 200 : 429);
  if (room) {
    await users[owner].reach(body.id, 'RUNNING');
    model.sandboxes.push({ id: body.id, owner, status: 'RUNNING' });
  }
});

const pause = step('pause', choice, async (model: Model, { users }: Real, at, pick) => {
  const sandbox = chosen(model, pick);
  const status = await users[at].pause(sandbox?.id ?? UNKNOWN_ID);
  assert.equal(status, sandbox?.owner === at ? 200 : 404);
  if (sandbox?.owner === at) {
    await users[at].reach(sandbox.id, 'PAUSED');
    sandbox.status = 'PAUSED';
  }
});

const resume = step('resume', choice, async (model: Model, { users }: Real, at, pick) => {
  const sandbox = chosen(model, pick);
  const status = await users[at].resume(sandbox?.id ?? UNKNOWN_ID);
  if (sandbox?.owner !== at) {
    assert.equal(status, 404);
    return;
  }
  const isPossible = sandbox.status === 'RUNNING' || hasRoom(model, at);
  assert.equal(status, isPossible ? 200 : 429);
  if (isPossible) {
    await users[at].reach(sandbox.id, 'RUNNING');
    sandbox.status = 'RUNNING';
  }
});

const remove = step('remove', choice, async (model: Model, { users }: Real, at, pick) => {
  const sandbox = chosen(model, pick);
  const status = await users[at].remove(sandbox?.id ?? UNKNOWN_ID);
  assert.equal(status, sandbox?.owner === at ? 200 : 404);
  if (sandbox?.owner === at) {
    model.sandboxes.splice(model.sandboxes.indexOf(sandbox), 1);
  }
});

const look = step('look', fc.tuple(who), async ({ sandboxes }: Model, { users }: Real, at) => {
  const { body } = await users[at].call<SandboxPageDto>('GET', '/search');
  const byId = (a: { id: string }, b: { id: string }): number => (a.id < b.id ? -1 : 1);
  assert.deepEqual(
    body.items.map(({ id, status }) => ({ id, status })).toSorted(byId),
    sandboxes
      .filter(({ owner }) => owner === at)
      .map(({ id, status }) => ({ id, status }))
      .toSorted(byId),
  );
});

describe('any sequence of requests of two users', () => {
  it('leaves the sandboxes that the model has, within the quota of each', async () => {
    const steps = [create, create, pause, resume, remove, look];

    expect(await failedSequence<Model, Real>(steps, begin, { sequences: 8, length: 25 })).toBeNull();
  });
});
