import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  AuthorizationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  RbacAuthorizationV1Api,
  type V1Pod,
  type V1Role,
} from '@kubernetes/client-node';
import { parse } from 'yaml';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { reservedPort } from '../../support/reserved-port.js';
import { firstOwnAddress } from '../../support/own-address.js';
import { until } from '../../support/until.js';
import { ApiServerProxy } from './api-server-proxy.js';

export const DEPLOY = path.join(import.meta.dirname, '../../../deploy/kubernetes');
/** What a service may do with sandboxes, and what it needs besides from outside of the cluster. */
export const ROLE_FILES = ['base/sandboxes/role.yaml', 'components/outside/role.yaml'].map((file) =>
  path.join(DEPLOY, file),
);
/** `npm run test:kubernetes` sets it, once it has found a cluster. */
export const CLUSTER = process.env['SLIPWAY_TEST_KUBECONFIG'] ?? '';
/** The image of `npm run image:agent-server`, as nodes of the cluster know it. */
export const AGENT_IMAGE = process.env['SLIPWAY_TEST_KUBERNETES_IMAGE'] ?? 'slipway-agent-server:trial';

const ACCOUNT = 'slipway';
const TOKEN_SECONDS = 3600;
const GROUP = { group: 'agents.x-k8s.io', version: 'v1beta1', plural: 'sandboxes' } as const;

/** How a service reaches a namespace for sandboxes. */
export interface ClusterAccess {
  namespace: string;
  proxy: ApiServerProxy;
  /** A file for the service: it leads to the proxy, as the account that has the Role of `deploy/kubernetes`. */
  kubeconfig: string;
}

/** Why the cluster of a file is of no use; null: it is. */
export async function missingForCluster(kubeconfig: string): Promise<string | null> {
  if (kubeconfig === '') {
    return 'KUBECONFIG names no cluster (npm run test:kubernetes says what it needs)';
  }
  try {
    await TestCluster.open(kubeconfig);
    return null;
  } catch (error) {
    return `the cluster of KUBECONFIG is of no use: ${errorMessage(error)}`;
  }
}

/** The cluster that tests run against, as its administrator. */
export class TestCluster {
  readonly core: CoreV1Api;
  readonly objects: CustomObjectsApi;
  private readonly namespaces: string[] = [];
  private readonly proxies: ApiServerProxy[] = [];

  private constructor(
    readonly config: KubeConfig,
    /** An address of this machine at which pods reach it. */
    readonly hostAddress: string,
    /** Whether this machine is a node of the cluster, and thus reaches its pods. */
    readonly reachesPods: boolean,
  ) {
    this.core = config.makeApiClient(CoreV1Api);
    this.objects = config.makeApiClient(CustomObjectsApi);
  }

  /** @param kubeconfig of an administrator */
  static async open(kubeconfig = CLUSTER): Promise<TestCluster> {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const { items } = await config.makeApiClient(CoreV1Api).listNode();
    const nodes = items.flatMap(({ status }) => status?.addresses ?? []);
    const shared = await firstOwnAddress(
      nodes.filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
    );
    const host = process.env['SLIPWAY_TEST_HOST_ADDRESS'] ?? shared;
    if (host === null) {
      throw new Error(
        'pods have to reach the fakes of the tests: set SLIPWAY_TEST_HOST_ADDRESS to an address of this machine that they reach',
      );
    }
    return new TestCluster(config, host, shared !== null);
  }

  /** A namespace for sandboxes as `deploy/kubernetes` makes it, and the account of a service that may use it. */
  async access(folder: string): Promise<ClusterAccess> {
    const namespace = `slipway-test-${randomBytes(4).toString('hex')}`;
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await this.core.createNamespace({ body: { metadata: { name: namespace, labels } } });
    this.namespaces.push(namespace);
    await this.core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: ACCOUNT } } });
    await Promise.all(ROLE_FILES.map((file) => this.grant(file, namespace)));
    await until(() => this.mayListPods(namespace));
    const { status } = await this.core.createNamespacedServiceAccountToken({
      name: ACCOUNT,
      namespace,
      body: { spec: { audiences: [], expirationSeconds: TOKEN_SECONDS } },
    });
    const proxy = await ApiServerProxy.start(await this.address());
    this.proxies.push(proxy);
    const kubeconfig = path.join(folder, `${namespace}.kubeconfig`);
    await writeFile(kubeconfig, JSON.stringify(kubeconfigOf(proxy.url, namespace, status?.token ?? '')), {
      mode: 0o600,
    });
    return { namespace, proxy, kubeconfig };
  }

  /** Variables of a service on this machine whose sandboxes are pods of the namespace. */
  variables({ namespace, kubeconfig }: Omit<ClusterAccess, 'proxy'>): Record<string, string> {
    return {
      SANDBOX_BACKEND: 'kubernetes',
      KUBECONFIG: kubeconfig,
      SANDBOX_NAMESPACE: namespace,
      SANDBOX_IMAGE: AGENT_IMAGE,
      SANDBOX_VOLUME_SIZE: '64Mi',
      SANDBOX_REACH: this.reachesPods ? 'pod' : 'proxy',
      // Pods call the service at an address of this machine.
      HOST: '0.0.0.0',
    };
  }

  /** Variables of one process of such a service: where it listens, and where pods reach it. */
  async variablesOfProcess(): Promise<Record<string, string>> {
    const port = String(await reservedPort());
    return { PORT: port, SANDBOX_CALLBACK_URL: `http://${this.hostAddress}:${port}` };
  }

  /** Pods of a namespace that have not been told to end. */
  async pods(namespace: string, labelSelector?: string): Promise<V1Pod[]> {
    const { items } = await this.core.listNamespacedPod({ namespace, labelSelector });
    return items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  }

  /** Names of all that a sandbox consists of, or all of them: resources, pods, claims. */
  async remains(namespace: string, sandboxId?: string): Promise<string[]> {
    const labelSelector = sandboxId === undefined ? 'slipway.sandbox-id' : `slipway.sandbox-id=${sandboxId}`;
    const sandboxes: { items: { metadata: { name: string } }[] } =
      await this.objects.listNamespacedCustomObject({ ...GROUP, namespace, labelSelector });
    const { items: pods } = await this.core.listNamespacedPod({ namespace, labelSelector });
    const { items: claims } = await this.core.listNamespacedPersistentVolumeClaim({
      namespace,
      labelSelector,
    });
    return [...sandboxes.items, ...pods, ...claims].map(({ metadata }) => metadata?.name ?? '');
  }

  /** The resources of sandboxes as they are stored. */
  async sandboxes(namespace: string): Promise<unknown[]> {
    const list: { items: unknown[] } = await this.objects.listNamespacedCustomObject({ ...GROUP, namespace });
    return list.items;
  }

  async close(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    await Promise.all(this.namespaces.map((name) => this.core.deleteNamespace({ name })));
  }

  /** Gives the account in a namespace the Role of a file. */
  private async grant(file: string, namespace: string): Promise<void> {
    const rbac = this.config.makeApiClient(RbacAuthorizationV1Api);
    const { metadata, rules }: V1Role = parse(await readFile(file, 'utf8'));
    const name = metadata?.name ?? '';
    await rbac.createNamespacedRole({ namespace, body: { metadata: { name }, rules } });
    await rbac.createNamespacedRoleBinding({
      namespace,
      body: {
        metadata: { name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
        subjects: [{ kind: 'ServiceAccount', name: ACCOUNT, namespace }],
      },
    });
  }

  /** The API server learns of new rights by a watch of its own, a moment later. */
  private async mayListPods(namespace: string): Promise<boolean> {
    const { status } = await this.config.makeApiClient(AuthorizationV1Api).createSubjectAccessReview({
      body: {
        spec: {
          user: `system:serviceaccount:${namespace}:${ACCOUNT}`,
          resourceAttributes: { namespace, verb: 'list', resource: 'pods' },
        },
      },
    });
    return status?.allowed === true;
  }

  private async address(): Promise<Parameters<typeof ApiServerProxy.start>[0]> {
    const cluster = this.config.getCurrentCluster();
    if (cluster === null) {
      throw new Error('the kubeconfig names no cluster');
    }
    const { server, caData, caFile, skipTLSVerify } = cluster;
    const ca = caData ? Buffer.from(caData, 'base64') : caFile ? await readFile(caFile) : undefined;
    return { server, ca, rejectUnauthorized: !skipTLSVerify };
  }
}

function kubeconfigOf(server: string, namespace: string, token: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    // Over HTTP there is no TLS to be verified, and the client asks for these words.
    clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: ACCOUNT, user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: ACCOUNT, namespace } }],
    'current-context': 'test',
  };
}
