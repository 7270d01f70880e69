import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { TestCluster } from '../../../../test/kubernetes/support/test-cluster.js';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import { TEST_CERTIFICATE } from '../../../../test/support/tls-certificate.js';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';
import { until } from '../../../../test/support/until.js';
import { quoteForShell } from '../../../agent-server/src/tools/shell-environment.js';
import type { EgressAccess } from '../sandbox-backend.js';
import { CALL_PRIVATE_SERVER } from '../sandbox-backend.contract.js';
import type { KubernetesSandboxBackend } from './kubernetes.backend.js';
import { AGENT_IMAGE, KUBECONFIG, KubernetesHarness } from './kubernetes.harness.js';

const SIGNAL = new AbortController().signal;
const PORT = 3180;
const RULES: EgressAccess = { port: PORT, credential: 'a.secret', authority: null, isOnlyWay: true };
const LABELS = { 'app.kubernetes.io/name': 'slipway-egress' };
const SERVE = `require('node:http').createServer((_, answer) => answer.end('proxied')).listen(${PORT})`;
/** Of another network only its operator knows whether it keeps policies. */
const describeEnforced =
  KUBECONFIG !== '' && process.env['SLIPWAY_TEST_POLICIES'] === 'enforced' ? describe : describe.skip;

/** Stands for the egress proxy: the network of sandboxes is the subject here. */
const PROXY_POD = {
  metadata: { name: 'proxy', labels: LABELS },
  spec: {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 0,
    securityContext: { runAsNonRoot: true, runAsUser: 10_001, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'proxy',
        image: AGENT_IMAGE,
        imagePullPolicy: 'IfNotPresent',
        command: ['/opt/slipway/bin/node', '-e', SERVE],
        readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
};

describeEnforced('kubernetes sandboxes with rules, in a cluster that enforces policies', () => {
  let harness: KubernetesHarness;
  let backend: KubernetesSandboxBackend;
  let web: Server;
  let echo: Socket;
  let proxy: string;
  let url: string;
  let host: string;

  beforeAll(async () => {
    host = (await TestCluster.open(KUBECONFIG)).hostAddress;
    web = createServer((_, answer) => answer.end('reached'));
    url = `http://${host}:${await startListening(web, 0, host)}/`;
    echo = createSocket('udp4').bind(0, host);
    echo.on('message', (text, { address, port }) => echo.send(text, port, address));
    await once(echo, 'listening');
    harness = await KubernetesHarness.make();
    const pods = `/api/v1/namespaces/${harness.namespace}/pods`;
    await harness.api.call(pods, { method: 'POST', body: PROXY_POD });
    await until(async () => {
      const pod = await harness.api.find(`${pods}/proxy`);
      proxy = jsonText(pod, 'status', 'podIP') ?? '';
      return jsonList(pod, 'status', 'conditions').some(
        (condition) => jsonText(condition, 'type') === 'Ready' && jsonText(condition, 'status') === 'True',
      );
    });
    backend = harness.another({ egress: { host: proxy }, allow: [`${host}/32`] });
    await backend.prepare();
  });

  afterEach(async () => {
    await Promise.all((await backend.list()).map(async ({ id }) => await backend.remove(id)));
  });

  afterAll(async () => {
    await harness.close();
    echo.close();
    await stopServer(web);
  });

  async function started(egress: EgressAccess, said: string[] = [], isWarm = false): Promise<SandboxClient> {
    const launch = harness.launch({ egress, onShortfall: (line) => said.push(line) });
    if (isWarm) {
      const { sessionKey: _, ...rest } = launch;
      await backend.warm.start(rest, SIGNAL);
    }
    await backend.start(launch, SIGNAL);
    return await sandboxAnswers(backend, launch);
  }

  const direct = async (client: SandboxClient, address: string): Promise<string> =>
    (await client.run(`curl -sS -m 5 --noproxy '*' ${address}`)).stdout;

  /** Over UDP, as a name server would be asked. */
  async function asked(client: SandboxClient): Promise<string> {
    const { port } = echo.address();
    const script = `
      const socket = require('node:dgram').createSocket('udp4');
      const end = (text) => { console.log(text); process.exit(); };
      socket.on('message', () => end('answered')).on('error', () => end('refused'));
      socket.send('x', ${port}, '${host}', (error) => { if (error) end('refused'); });
      setTimeout(() => end('silent'), 3000);`;
    return (await client.run(`node -e ${quoteForShell(script)}`)).stdout.trim();
  }

  it.each([
    ['begun cold', false],
    ['kept warm before', true],
  ])('reach the proxy, by its address, and nothing else: %s', async (_what, isWarm) => {
    const said: string[] = [];
    const client = await started(RULES, said, isWarm);
    await until(async () => (await client.run('curl -sS -m 5 http://any.example/')).stdout === 'proxied');
    expect(await direct(client, `http://${proxy}:${PORT}/`)).toBe('proxied');
    await until(async () => (await direct(client, url)) === '');
    expect(await asked(client)).not.toBe('answered');
    const names = await client.run('cat /etc/resolv.conf; getent hosts any.example; echo $?');
    expect(names.stdout).toMatch(/^nameserver 127\.0\.0\.1\n[^]*2\n$/);
    expect(said).toEqual([]);
  });

  it('are as open as before where credentials alone are outside', async () => {
    const client = await started({ ...RULES, isOnlyWay: false });
    await until(async () => (await direct(client, url)) === 'reached');
    await until(async () => (await asked(client)) === 'answered');
    expect((await client.run('curl -sS -m 5 http://any.example/')).stdout).toBe('proxied');
  });

  it('keep their rules over a pause, and lose them with those of their start', async () => {
    const launch = harness.launch({ egress: RULES });
    await backend.start(launch, SIGNAL);
    await backend.pause(launch.id);
    await backend.resume(launch, SIGNAL);
    const closed = await sandboxAnswers(backend, launch);
    await until(async () => (await direct(closed, url)) === '');
    expect(await asked(closed)).not.toBe('answered');
    await backend.pause(launch.id);
    const { egress: _, ...open } = launch;
    await backend.resume(open, SIGNAL);
    const client = await sandboxAnswers(backend, launch);
    await until(async () => (await direct(client, url)) === 'reached');
  });

  it('have a file with the authority of their proxy for stock images, which programs trust', async () => {
    // Ours speaks the protocol of stock agent servers.
    const program = { kind: 'image', image: AGENT_IMAGE, args: ['--no-secrets-stdin'] } as const;
    const launch = harness.launch({
      program: { ...program, args: [...program.args] },
      workingDir: 'project',
      egress: { ...RULES, authority: TEST_CERTIFICATE },
    });
    await backend.start(launch, SIGNAL);
    const client = await sandboxAnswers(backend, launch);
    const bundle = '/etc/slipway-authorities/bundle.pem';
    const trusting = `CURL_CA_BUNDLE=${bundle} NODE_EXTRA_CA_CERTS=${bundle}`;
    const { stdout } = await client.run(
      `env -i PATH="$PATH" ${trusting} node -e ${quoteForShell(CALL_PRIVATE_SERVER)}`,
    );
    expect(stdout).toBe('trusted trusted\n');
    expect((await client.run(`echo >>${bundle}`)).exitCode).not.toBe(0);
  });

  it('start with a line about policies of others that widen theirs, which they do', async () => {
    const policies = `/apis/networking.k8s.io/v1/namespaces/${harness.namespace}/networkpolicies`;
    const spec = {
      podSelector: { matchLabels: { 'slipway.instance': harness.instanceId } },
      policyTypes: ['Egress'],
      egress: [{ to: [{ ipBlock: { cidr: `${host}/32` } }] }],
    };
    const body = { metadata: { name: 'to-git' }, spec };
    await harness.api.call(policies, { method: 'POST', body });
    try {
      const said: string[] = [];
      const client = await started(RULES, said);
      expect(said).toEqual([expect.stringMatching(/^Its rules may not hold: .*: to-git\.$/)]);
      await until(async () => (await direct(client, url)) === 'reached');
    } finally {
      await harness.api.call(`${policies}/to-git`, { method: 'DELETE' });
    }
  });
});
