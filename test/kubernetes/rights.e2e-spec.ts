import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ascending } from '@slipway/common/compare.js';
import { until } from '../support/until.js';
import { type ApiClient, text } from '../system/journeys/support/api-client.js';
import { message, shell } from '../system/journeys/support/script.js';
import { accessesOf, rightOf, rightsOfRole } from './support/api-access.js';
import { describeInCluster } from './support/in-cluster.js';
import { KubernetesWorld } from './support/kubernetes-world.js';
import { ROLE_FILES } from './support/test-cluster.js';

const SPECS = [{ id: 'slipway' }, { id: 'huge', resources: { cpu: 1024, memory_mb: 512 } }];

describe('what the API server authorises', () => {
  it.each([
    ['GET', '/apis/a.x-k8s.io/v1beta1/namespaces/n/sandboxes', false, ['a.x-k8s.io sandboxes: list']],
    ['GET', '/api/v1/namespaces/n/pods?watch=true&labelSelector=a', false, ['pods: watch']],
    ['GET', '/api/v1/namespaces/n/pods/p/log?container=c', false, ['pods/log: get']],
    [
      'GET',
      '/api/v1/namespaces/n/pods/p/attach?stdin=true',
      true,
      ['pods/attach: get', 'pods/attach: create'],
    ],
    ['PATCH', '/apis/a.x-k8s.io/v1beta1/namespaces/n/sandboxes/s', false, ['a.x-k8s.io sandboxes: patch']],
    ['DELETE', '/api/v1/namespaces/n/pods', false, ['pods: deletecollection']],
    ['GET', '/readyz', false, []],
  ])('%s %s', (method, url, isUpgrade, rights) => {
    expect(accessesOf(method, url, isUpgrade).map(rightOf)).toEqual(rights);
  });
});

describeInCluster('the Role of deploy/kubernetes', () => {
  let world: KubernetesWorld;
  let user: ApiClient;

  beforeAll(async () => {
    world = await KubernetesWorld.open();
    // The second one finds the policy of the first.
    const first = await world.start({ SANDBOX_REACH: 'proxy' });
    const rights = () => world.access.proxy.requests.flatMap(({ accesses }) => accesses.map(rightOf));
    await until(() => rights().includes('networking.k8s.io networkpolicies: create'));
    await world.journey.stop(first);
    const specs = path.join(path.dirname(world.journey.dataDir), 'specs.json');
    await writeFile(specs, JSON.stringify(SPECS));
    await world.start({ SANDBOX_REACH: 'proxy', SANDBOX_SPECS_FILE: specs });
    user = await world.journey.createUser();
  });

  afterAll(async () => {
    await world.close();
  });

  it('gives what whole lives of sandboxes need, and nothing else', async () => {
    const { sandboxId, id } = await user.started(message(shell('echo lives')));
    await user.conversationIn(id, 'finished');
    await user.post(`/api/v1/sandboxes/${sandboxId}/pause`);
    await user.sandboxIn(sandboxId, 'PAUSED');
    await user.post(`/api/v1/sandboxes/${sandboxId}/resume`);
    await user.sandboxIn(sandboxId, 'RUNNING');
    // Its last words are read, and why it ended.
    const killed = text(await user.sandbox(sandboxId), 'id');
    await user.run(sandboxId, 'kill 1').catch(() => null);
    await user.sandboxIn(killed, 'ERROR');
    // Whether a node is on its way is among the events of a pod.
    const huge = text(await user.post('/api/v1/sandboxes?sandbox_spec_id=huge'), 'id');
    await user.sandboxIn(huge, 'ERROR');
    await user.remove(`/api/v1/sandboxes/${huge}`);
    await user.remove(`/api/v1/sandboxes/${sandboxId}`);
    await until(async () => (await world.cluster.remains(world.namespace, sandboxId)).length === 0);

    const { requests } = world.access.proxy;
    const accesses = requests.flatMap((request) => request.accesses);
    // Everybody may ask for their own rights (the ClusterRole system:basic-user).
    const inNamespace = accesses.filter(({ resource }) => resource !== 'selfsubjectaccessreviews');
    expect([...new Set(inNamespace.map(({ namespace }) => namespace))]).toEqual([world.namespace]);
    const refused = requests.filter(({ status }) => status === 401 || status === 403);
    expect(refused.flatMap(({ accesses }) => accesses.map(rightOf))).toEqual([]);

    const given = await Promise.all(
      ROLE_FILES.map(async (file) => rightsOfRole(await readFile(file, 'utf8'))),
    );
    const used = [...new Set(inNamespace.map(rightOf))];
    expect(used.toSorted(ascending)).toEqual(given.flat().toSorted(ascending));
  });
});
