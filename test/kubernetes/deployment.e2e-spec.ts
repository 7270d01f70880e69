import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { NetworkingV1Api } from '@kubernetes/client-node';
import { Load } from '../rolling/load.js';
import { Tally } from '../rolling/tally.js';
import type { ApiClient } from '../system/journeys/support/api-client.js';
import { JourneyWorld } from '../system/journeys/support/journey-world.js';
import {
  fixFailingCheck,
  pauseAndGoOn,
  removeWhole,
  userWithFailingCheck,
} from './support/failing-check.story.js';
import { describeInCluster } from './support/in-cluster.js';
import { ServiceRelay } from './support/service-relay.js';
import { TestCluster } from './support/test-cluster.js';
import { TrialDeployment } from './support/trial-deployment.js';

describeInCluster('deploy/kubernetes, applied', () => {
  let cluster: TestCluster;
  let journey: JourneyWorld;
  let trial: TrialDeployment;
  let relay: ServiceRelay;
  let user: ApiClient;

  beforeAll(async () => {
    cluster = await TestCluster.open();
    const host = cluster.hostAddress;
    journey = await JourneyWorld.open({ embedded: true, host, githubHost: host });
    trial = await TrialDeployment.apply(cluster, journey.adminKey, {
      GITHUB_API_URL: journey.github.origin,
      GITHUB_CLONE_URL: journey.git.origin,
      RATE_LIMIT_PER_MINUTE: '0',
      MAX_RUNNING_SANDBOXES: '20',
    });
    relay = await ServiceRelay.start(cluster, { namespace: trial.namespace, service: 'slipway', port: 3000 });
    journey.url = relay.url;
    user = await userWithFailingCheck(journey);
  });

  afterAll(async () => {
    await relay.close();
    await trial.remove();
    await journey.close();
    await cluster.close();
  });

  const podsOf = async (sandboxId: string): Promise<string[]> => {
    const pods = await cluster.pods(trial.sandboxes, `slipway.sandbox-id=${sandboxId}`);
    return pods.map(({ metadata }) => metadata?.name ?? '');
  };

  it('does the main job and holds a conversation through the Service', async () => {
    const started = await fixFailingCheck(user, journey);
    expect(await podsOf(started.sandboxId)).toHaveLength(1);
    await pauseAndGoOn(user, started, podsOf);
    await removeWhole(user, started, (id) => cluster.remains(trial.sandboxes, id));
  });

  it('lets nothing but its own pods into sandboxes', async () => {
    const networking = cluster.config.makeApiClient(NetworkingV1Api);
    const { items } = await networking.listNamespacedNetworkPolicy({ namespace: trial.sandboxes });
    const sources = items.flatMap(({ spec }) => (spec?.ingress ?? []).flatMap(({ _from }) => _from ?? []));
    expect(sources).toMatchObject([
      {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': trial.namespace } },
        podSelector: { matchLabels: { 'app.kubernetes.io/name': 'slipway' } },
      },
    ]);
  });

  it('loses no request when it is rolled out under load, and what was under way when a replica is killed', async () => {
    const tally = new Tally();
    const { adminKey, hub } = journey;
    const load = await Load.prepare(
      { url: relay.url, adminKey, settings: journey.modelSettings(), gitToken: hub.token },
      tally,
    );
    const { problems, lines } = await load.during(async () => {
      await trial.restart();
      const [victim = ''] = await trial.pods();
      await tally.duringFault(() => trial.kill(victim));
      await trial.untilWhole();
    });
    await load.close();

    process.stdout.write(`${lines.join('\n')}\n`);
    expect({ problems, lines }).toEqual({ problems: [], lines });
  });
});
