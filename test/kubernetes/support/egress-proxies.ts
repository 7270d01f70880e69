import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { CLUSTER, DEPLOY, type TestCluster } from './test-cluster.js';

const run = promisify(execFile);
const NAME = 'slipway-egress';
const ROLL_OUT_TIMEOUT = '120s';

/** `deploy/kubernetes/components/egress-proxy`, applied to a namespace of sandboxes for a service on this machine. */
export class EgressProxies {
  readonly key = randomBytes(32).toString('hex');

  constructor(
    private readonly cluster: TestCluster,
    private readonly namespace: string,
  ) {}

  /** @param serviceUrl where pods reach the service, which need not run yet */
  async apply(serviceUrl: string): Promise<void> {
    const { namespace } = this;
    const body = { metadata: { name: NAME }, stringData: { EGRESS_PROXY_KEY: this.key } };
    await this.cluster.core.createNamespacedSecret({ namespace, body });
    const folder = await mkdtemp(path.join(tmpdir(), 'overlay-'));
    try {
      const overlay = {
        apiVersion: 'kustomize.config.k8s.io/v1beta1',
        kind: 'Kustomization',
        namespace,
        components: [path.relative(folder, path.join(DEPLOY, 'components/egress-proxy'))],
        images: [{ name: 'slipway', newTag: 'trial' }],
        patches: [
          { target: { kind: 'Deployment', name: NAME }, patch: JSON.stringify(environmentPatch(serviceUrl)) },
        ],
      };
      await writeFile(path.join(folder, 'kustomization.yaml'), JSON.stringify(overlay));
      await this.kubectl('apply', '--kustomize', folder);
    } finally {
      await rm(folder, { recursive: true, maxRetries: 10 });
    }
    await this.kubectl('apply', '--filename', path.join(DEPLOY, 'base/sandboxes/network-policy.yaml'));
    await this.kubectl('rollout', 'status', `deployment/${NAME}`, '--timeout', ROLL_OUT_TIMEOUT);
  }

  /** The Service of some clusters has no address that answers; any of these serves any sandbox. */
  async addresses(): Promise<string[]> {
    const pods = await this.cluster.pods(this.namespace, `app.kubernetes.io/name=${NAME}`);
    return pods.flatMap(({ status }) => status?.podIP ?? []);
  }

  private async kubectl(...args: string[]): Promise<void> {
    await run('kubectl', ['--kubeconfig', CLUSTER, '--namespace', this.namespace, ...args]);
  }
}

function environmentPatch(serviceUrl: string): object {
  const env = [{ name: 'EGRESS_PROXY_SERVICE_URL', value: serviceUrl }];
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: NAME },
    spec: { template: { spec: { containers: [{ name: 'egress-proxy', env }] } } },
  };
}
