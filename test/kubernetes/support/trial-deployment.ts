import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { CoreV1Api } from '@kubernetes/client-node';
import { until } from '../../support/until.js';
import { ApiServerRelay } from './api-server-relay.js';
import { CLUSTER, DEPLOY, type TestCluster } from './test-cluster.js';

const run = promisify(execFile);
const NAMESPACE = 'slipway-trial';
const SANDBOXES = 'slipway-trial-sandboxes';
/** In `base/service/deployment.yaml`. */
const REPLICAS = 2;
const ROLL_OUT_TIMEOUT = '120s';

/** `deploy/kubernetes/overlays/trial`, applied as its README says. */
export class TrialDeployment {
  readonly namespace = NAMESPACE;
  readonly sandboxes = SANDBOXES;

  private constructor(
    private readonly cluster: TestCluster,
    private readonly folder: string,
    private readonly apiServer: ApiServerRelay | null,
  ) {}

  /**
   * @param environment further variables of the service, as an overlay adds them
   * @throws Error when it was applied by other means: it would be removed at the end
   */
  static async apply(
    cluster: TestCluster,
    adminKey: string,
    environment: Record<string, string>,
  ): Promise<TrialDeployment> {
    const { items } = await cluster.core.listNamespace();
    if (items.some(({ metadata }) => [NAMESPACE, SANDBOXES].includes(metadata?.name ?? ''))) {
      throw new Error(
        `the namespace ${NAMESPACE} is there already: kubectl delete namespace ${NAMESPACE} ${SANDBOXES}`,
      );
    }
    const folder = await mkdtemp(path.join(tmpdir(), 'overlay-'));
    const trial = new TrialDeployment(cluster, folder, await ApiServerRelay.startIfNeeded(cluster));
    try {
      await trial.applyAll(adminKey, environment);
      return trial;
    } catch (error) {
      const state = await trial.kubectl('get', 'pods,events', '--namespace', NAMESPACE).catch(String);
      await trial.remove();
      throw new Error(`the deployment did not come up:\n${state}`, { cause: error });
    }
  }

  /** Runs kubectl and answers what it printed. */
  async kubectl(...args: string[]): Promise<string> {
    const { stdout } = await run('kubectl', ['--kubeconfig', CLUSTER, ...args]);
    return stdout;
  }

  /** Replaces all replicas one by one, and waits until the last of the old ones has ended. */
  async restart(): Promise<void> {
    const before = await this.pods();
    await this.kubectl('rollout', 'restart', 'deployment/slipway', '--namespace', NAMESPACE);
    await this.rollOut('slipway');
    await until(async () => (await this.pods()).every((name) => !before.includes(name)));
  }

  /**
   * Kills a replica in the middle of its work, and waits until it is dead. With `--force` the API server would only forget the
   * pod, whose processes the node ends two seconds later.
   */
  async kill(name: string): Promise<void> {
    await this.kubectl('delete', 'pod', name, '--namespace', NAMESPACE, '--grace-period=1', '--wait=true');
  }

  /** Waits for the replicas that there should be, and no others. */
  async untilWhole(): Promise<void> {
    await this.rollOut('slipway');
    await until(async () => (await this.pods()).length === REPLICAS);
  }

  /** Pods of the service, those that are ending included. */
  async pods(): Promise<string[]> {
    const { items } = await this.cluster.core.listNamespacedPod({
      namespace: NAMESPACE,
      labelSelector: 'app.kubernetes.io/name=slipway',
    });
    return items.map(({ metadata }) => metadata?.name ?? '');
  }

  async remove(): Promise<void> {
    const core = this.cluster.config.makeApiClient(CoreV1Api);
    await Promise.allSettled([SANDBOXES, NAMESPACE].map((name) => core.deleteNamespace({ name })));
    await this.apiServer?.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }

  private async applyAll(adminKey: string, environment: Record<string, string>): Promise<void> {
    const password = randomBytes(16).toString('hex');
    await this.kubectl('create', 'namespace', NAMESPACE);
    await this.secret('postgres', { POSTGRES_PASSWORD: password });
    await this.kubectl('apply', '--kustomize', path.join(DEPLOY, 'overlays/trial/postgres'));
    await this.rollOut('postgres');
    const [postgres] = await this.cluster.pods(NAMESPACE, 'app.kubernetes.io/name=postgres');
    await this.secret('slipway', {
      DATABASE_URL: `postgres://slipway:${password}@${postgres?.status?.podIP}:5432/slipway`,
      ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}`,
      BOOTSTRAP_API_KEY: adminKey,
    });
    await this.writeOverlay(environment);
    await this.kubectl('apply', '--kustomize', this.folder);
    await this.rollOut('slipway');
  }

  private async rollOut(deployment: string): Promise<void> {
    const args = ['rollout', 'status', `deployment/${deployment}`, '--namespace', NAMESPACE];
    await this.kubectl(...args, '--timeout', ROLL_OUT_TIMEOUT);
  }

  private async secret(name: string, stringData: Record<string, string>): Promise<void> {
    const body = { metadata: { name }, stringData };
    await this.cluster.core.createNamespacedSecret({ namespace: NAMESPACE, body });
  }

  private async writeOverlay(environment: Record<string, string>): Promise<void> {
    const variables = { ...environment, ...this.apiServer?.environment };
    const overlay = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: [path.relative(this.folder, path.join(DEPLOY, 'overlays/trial'))],
      configMapGenerator: [
        {
          name: 'slipway',
          namespace: NAMESPACE,
          behavior: 'merge',
          literals: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
        },
      ],
      ...(this.apiServer && {
        patches: [
          { target: { kind: 'Deployment', name: 'slipway' }, patch: JSON.stringify([this.apiServer.patch]) },
        ],
      }),
    };
    await writeFile(path.join(this.folder, 'kustomization.yaml'), JSON.stringify(overlay));
  }
}
