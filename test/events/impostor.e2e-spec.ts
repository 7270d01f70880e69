import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { jsonAt } from '@slipway/common/json-access.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { SyncRequests } from '../../src/v1/events/log-sync/sync-requests.js';
import { IdlenessProbe } from '../../src/v1/sandboxes/lifecycle/idle-reaper.js';
import { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { runningSandbox } from '../support/running-sandbox.js';
import { startListening } from '../support/start-listening.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const service = useTestApp();
let agent: FakeConversationServer & { address: string };
/** A foreign program that listens where a sandbox was: each request would tell it the sandbox's key. */
let impostor: Server;
let connections: number;
let sandbox: string;
let id: string;

beforeEach(async () => {
  agent = await FakeConversationServer.start();
  sandbox = await insertRunningSandbox(service, service.user.id, agent);
  id = randomUUID();
  agent.open(id);
});

afterEach(async () => {
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
  impostor.close();
});

/** Pauses the sandbox as another replica does, and lets the impostor listen where it was. */
async function replaceByImpostor(): Promise<void> {
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL WHERE id = $1`, [
    sandbox,
  ]);
  await agent.close();
  connections = 0;
  impostor = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await startListening(impostor, Number(new URL(agent.address).port));
}

async function follower(): Promise<unknown> {
  const [row] = await service.dataSource.query<{ follower: string | null }[]>(
    'SELECT follower FROM followed_conversations WHERE id = $1',
    [id],
  );
  return row?.follower;
}

async function count(): Promise<unknown> {
  const response = await fetch(`${service.url}/api/v1/conversation/${id}/events/count`, {
    headers: service.user.headers,
  });
  return await response.json();
}

describe('a program that listens where a sandbox was before its pause', () => {
  it('gets no request of a follower, neither before nor after the resume', async () => {
    await openLog(service, service.user.id, sandbox, id);
    agent.append(id);
    await until(async () => (await count()) === 1 && agent.watchers === 1);
    await replaceByImpostor();
    // The follower does not know about the pause yet; its replica announces news all the same.
    const requests = service.app.get(SyncRequests, { strict: false });
    await until(async () => {
      requests.requestSync(id);
      return (await follower()) === null;
    });
    expect(connections).toBe(0);

    const resumed = await FakeConversationServer.start();
    resumed.key = agent.key;
    resumed.conversations.set(id, agent.conversations.get(id) ?? { info: {}, events: [] });
    agent = resumed;
    await service.dataSource.query(
      `UPDATE sandboxes SET status = 'RUNNING', address = $2, generation = generation + 1 WHERE id = $1`,
      [sandbox, resumed.address],
    );
    resumed.append(id);
    await until(async () => (await count()) === 2 && resumed.watchers === 1);
    await resumed.close();
    expect(connections).toBe(0);
  });

  it('gets no request of work that began before the pause', async () => {
    const client = service.app.get(AgentServerClient, { strict: false });
    const target = await runningSandbox(service, sandbox);
    expect(jsonAt(await client.findConversation(target, id), 'id')).toBe(id);
    await replaceByImpostor();
    const attempts = await Promise.allSettled([
      client.findConversation(target, id),
      client.sendMessage(target, id, { role: 'user', content: [], run: true }),
      client.giveCredentials(target, id, {}),
    ]);
    expect(attempts.map(({ status }) => status)).toEqual(attempts.map(() => 'rejected'));
    expect(connections).toBe(0);
  });

  it('gets no request of a probe for idle sandboxes', async () => {
    const row = await service.dataSource.getRepository(Sandbox).findOneByOrFail({ id: sandbox });
    await replaceByImpostor();
    expect(await service.app.get(IdlenessProbe, { strict: false }).activity(row)).toBeNull();
    expect(connections).toBe(0);
  });
});
