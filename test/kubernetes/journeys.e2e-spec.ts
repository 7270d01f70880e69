import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { ServiceProcess } from '../support/service-process.js';
import { until } from '../support/until.js';
import type { ApiClient } from '../system/journeys/support/api-client.js';
import { message, shell } from '../system/journeys/support/script.js';
import { describeInCluster } from './support/in-cluster.js';
import {
  fixFailingCheck,
  pauseAndGoOn,
  removeWhole,
  userWithFailingCheck,
} from './support/failing-check.story.js';
import { KubernetesWorld } from './support/kubernetes-world.js';

describeInCluster('journeys with sandboxes that are pods', () => {
  let world: KubernetesWorld;
  let first: ServiceProcess;
  let user: ApiClient;

  beforeAll(async () => {
    world = await KubernetesWorld.open();
    first = await world.start();
    user = await userWithFailingCheck(world.journey);
  });

  afterAll(async () => {
    await world.close();
  });

  const remains = (sandboxId: string) => world.cluster.remains(world.namespace, sandboxId);

  it('goes from a suggested task to its pull request, rests, goes on, and leaves nothing behind', async () => {
    const started = await fixFailingCheck(user, world.journey);
    expect(await world.pods(started.sandboxId)).toHaveLength(1);

    await pauseAndGoOn(user, started, (id) => world.pods(id));

    await removeWhole(user, started, remains);
    await until(async () => (await user.sandbox(started.sandboxId)) === null);
  });

  it('keeps the session key, model keys and tokens out of everything that the cluster stores', async () => {
    const started = await user.started(message('Say well.'));
    const pods = await world.cluster.pods(world.namespace);
    const { items: secrets } = await world.cluster.core.listNamespacedSecret({ namespace: world.namespace });
    const { items: events } = await world.cluster.core.listNamespacedEvent({ namespace: world.namespace });
    const sandboxes = await world.cluster.sandboxes(world.namespace);
    const stored = JSON.stringify([pods, secrets, events, sandboxes]);

    expect(stored).toContain(started.sandboxId);
    expect(world.journey.secrets.in(stored)).toEqual([]);
    await removeWhole(user, started, remains);
  });

  it('has either of two replicas work on any sandbox', async () => {
    const other = await world.start();
    const there = user.at(other.url);
    const started = await user.started(message('Say well.'));

    await there.post(`/api/v1/sandboxes/${started.sandboxId}/pause`);
    await user.sandboxIn(started.sandboxId, 'PAUSED');
    await there.post(`/api/v1/sandboxes/${started.sandboxId}/resume`);
    await there.sandboxIn(started.sandboxId, 'RUNNING');
    expect((await there.run(started.sandboxId, 'echo here')).output).toBe('here\n');
    await removeWhole(there, started, remains);
    await world.journey.stop(other);
  });

  it('reaches sandboxes through the API server alone, and so do replicas that are set to reach pods', async () => {
    // No other replica may take the start.
    await world.journey.stop(first);
    const outside = await world.start({ SANDBOX_REACH: 'proxy' });
    const client = user.at(outside.url);
    const started = await client.started(message(shell('echo reached')));
    await client.conversationIn(started.id, 'finished');
    expect(JSON.stringify(await client.events(started.id))).toContain('reached');
    expect((await client.run(started.sandboxId, 'echo and back')).output).toBe('and back\n');

    const there = user.at((await world.start({ SANDBOX_REACH: 'pod' })).url);
    expect((await there.run(started.sandboxId, 'echo from here')).output).toBe('from here\n');
    await removeWhole(there, started, remains);
  });
});
