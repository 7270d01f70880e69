import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { startListening, stopServer } from '../support/start-listening.js';
import { until } from '../support/until.js';
import type { ApiClient } from '../system/journeys/support/api-client.js';
import { message } from '../system/journeys/support/script.js';
import { EgressProxies } from './support/egress-proxies.js';
import { fixFailingCheck, pauseAndGoOn, userWithFailingCheck } from './support/failing-check.story.js';
import { describeInCluster } from './support/in-cluster.js';
import { KubernetesWorld } from './support/kubernetes-world.js';

const METADATA = '169.254.169.254';
/** Of another network only its operator knows whether it keeps policies. */
const describeEnforced = process.env['SLIPWAY_TEST_POLICIES'] === 'enforced' ? describe : describe.skip;

describeInCluster('pods with rules, and credentials outside of them', () => {
  const servers: Server[] = [];
  let world: KubernetesWorld;
  let proxies: EgressProxies;
  let user: ApiClient;
  let sandboxId: string;
  let conversationId: string;
  let [allowed, forbidden, inCluster] = ['', '', ''];

  async function listen(host: string): Promise<string> {
    const server = createServer((_, answer) => answer.end('reached'));
    servers.push(server);
    return `${host}:${await startListening(server, 0, host)}`;
  }

  const run = async (command: string): Promise<string> => (await user.run(sandboxId, command)).output;
  const curl = async (given: string): Promise<string> =>
    run(`curl -sS -m 20 -w ' %{http_code}' ${given} 2>&1`);

  beforeAll(async () => {
    world = await KubernetesWorld.open();
    const host = world.cluster.hostAddress;
    [allowed, forbidden] = [await listen(host), await listen(host)];
    proxies = new EgressProxies(world.cluster, world.namespace);
    const process = await world.cluster.variablesOfProcess();
    await proxies.apply(process['SANDBOX_CALLBACK_URL'] ?? '');
    const [first = '', second = ''] = await proxies.addresses();
    inCluster = `${second}:3180`;
    await world.start({
      ...process,
      SANDBOX_EGRESS_HOST: first,
      EGRESS_PROXY_KEY: proxies.key,
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_NETWORK_ALLOW: `${host}/32`,
    });
    user = await userWithFailingCheck(world.journey);
    await user.saveSettings({ sandbox_egress: { allow: [allowed, METADATA, inCluster] } });
    const started = await user.started(message('Say well.'));
    [sandboxId, conversationId] = [started.sandboxId, started.id];
    await user.conversationIn(conversationId, 'finished');
  });

  afterAll(async () => {
    await world.close();
    await Promise.all(servers.map(stopServer));
  });

  it('reach what a rule names, and are told why they reach nothing else', async () => {
    expect(await curl(`http://${allowed}/`)).toBe('reached 200');
    const refused = await curl('-D - http://other.example/');
    expect(refused).toContain('X-Slipway-Egress: denied; reason=rule');
    expect(refused).toMatch(/ 403$/);
    expect(await curl(`-D - http://${forbidden}/`)).toContain('X-Slipway-Egress: denied; reason=address');
    expect(await curl('https://other.example/')).toMatch(/CONNECT tunnel failed, response 403/);
  });

  it('reach no address of the cluster or its nodes through it, also where a rule names that', async () => {
    for (const address of [METADATA, inCluster]) {
      expect(await curl(`-D - http://${address}/`)).toContain('X-Slipway-Egress: denied; reason=address');
    }
  });

  it('are served by any proxy, and known to each by their own credential alone', async () => {
    const [first, second] = await proxies.addresses();
    expect(await curl(`-x "\${https_proxy/${first}/${second}}" http://${allowed}/`)).toBe('reached 200');
    expect(await curl(`-x http://${sandboxId}:guess@${inCluster} http://${allowed}/`)).toMatch(/ 407$/);
  });

  describeEnforced('in a network that keeps policies', () => {
    it('have no way around it, whatever their programs make of their variables', async () => {
      const around = await run(
        [
          `curl -sS -m 5 --noproxy '*' http://${allowed}/`,
          `env -i timeout 5 /bin/bash -c 'exec 3<>/dev/tcp/${allowed.replace(':', '/')}'`,
          'getent hosts other.example',
        ]
          .map((command) => `${command} >/dev/null 2>&1 && echo open || echo closed`)
          .join('; '),
      );
      expect(around).toBe('closed\nclosed\nclosed\n');
    });
  });

  it('have what they were refused told and listed, and their owner allows it once', async () => {
    const events = async (): Promise<unknown[]> => user.events(conversationId);
    const told = { host: 'other.example', port: 80, reason: 'rule', phase: 'agent' };
    const isTold = (event: unknown): boolean =>
      jsonText(event, 'key') === 'EgressDenied' && jsonText(event, 'value', 'host') === told.host;
    await until(async () => (await events()).some(isTold));
    expect((await events()).filter(isTold).map((event) => jsonAt(event, 'value'))).toContainEqual(
      expect.objectContaining(told),
    );
    const log = { requests: await user.get(`/api/v1/sandboxes/${sandboxId}/egress/log`) };
    expect(jsonList(log, 'requests').map((request) => jsonText(request, 'host'))).toContain(told.host);

    await user.post(`/api/v1/sandboxes/${sandboxId}/egress/allow`, { host: forbidden, once: true });
    await until(async () => (await curl(`http://${forbidden}/`)) === 'reached 200');
    expect(await curl(`http://${forbidden}/`)).toMatch(/ 403$/);
  });

  it('reach during their setup what the rules of their start say of it, and no more once the agent begins', async () => {
    const repository = 'octo/set-up';
    const setUp = `curl -sS -m 20 http://${forbidden}/ >"$HOME"/fetched`;
    await world.journey.git.commit(repository, 'main', { '.openhands/setup.sh': setUp });
    const egress = { allow: [], setup: { allow: [forbidden] } };
    const open = await world.journey.createUser();
    await world.journey.giveToken(open);
    const started = await open.started({ ...message('Say well.'), selected_repository: repository, egress });
    const { output } = await open.run(
      started.sandboxId,
      `cat "$HOME"/fetched; ${setUp}; cat "$HOME"/fetched`,
    );
    expect(output).toMatch(/^reached.*denied/s);
    await open.remove(`/api/v1/sandboxes/${started.sandboxId}`);
  });

  it('do the main job with placeholders: clone, model, push and pull request', async () => {
    const started = await fixFailingCheck(user, world.journey);
    const { output } = await user.run(
      started.sandboxId,
      'env; cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n"',
    );
    expect(output).toContain('https_proxy=');
    expect(world.journey.secrets.in(output)).toEqual([]);
    await pauseAndGoOn(user, started, (id) => world.pods(id));
    await user.remove(`/api/v1/sandboxes/${started.sandboxId}`);
  });
});
