import path from 'node:path';
import { hasIsolatedProcesses, OWN_ADDRESS } from '../../../../test/support/isolated-processes.js';
import { reservedPort } from '../../../../test/support/reserved-port.js';
import { missingForCluster, TestCluster } from '../../../../test/kubernetes/support/test-cluster.js';

/** Python loads slowly, on a busy machine very. */
export const START_SECONDS = 300;

const KUBECONFIG = process.env['KUBECONFIG'] ?? '';
/** What the stock agent server is told wherever it runs. */
const VARIABLES = {
  OH_ENABLE_VSCODE: 'false',
  OH_ENABLE_VNC: 'false',
  // The stock server's events have local times without a zone; the service reads them as UTC.
  TZ: 'UTC',
  // The stock server would otherwise ask the network for prices while it loads.
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  OPENHANDS_SUPPRESS_BANNER: '1',
};

/** A way to run the stock agent server. */
interface Place {
  /** Sandbox specification of the stock agent server. */
  spec: object;
  /** Variables of the service. */
  environment: Record<string, string>;
  /** An address of this machine at which it reaches the model. */
  host: string;
  close(): Promise<void>;
}

/** @param python one that has the packages */
export function asProcess(python: string): Place {
  /** A Python that is not where it was installed needs it; the service passes none of it on by itself. */
  const libraries = process.env['LD_LIBRARY_PATH'];
  return {
    spec: {
      id: 'stock',
      agent_server: 'openhands',
      command: [python, '-m', 'openhands.agent_server', '--host', '127.0.0.1', '--port', '{port}'],
      start_timeout_seconds: START_SECONDS,
      env: { ...VARIABLES, ...(libraries !== undefined && { LD_LIBRARY_PATH: libraries }) },
    },
    // What is tried is the protocol; the server's files may lie where isolation hides them.
    environment: { SANDBOX_ISOLATION: 'none' },
    host: '127.0.0.1',
    close: async () => undefined,
  };
}

/**
 * In a network of its own, with placeholders in place of keys.
 * @param python one that has the packages, in a folder outside of any home
 * @throws Error where processes can have no such network
 */
export async function asProcessOutside(python: string): Promise<Place> {
  if (OWN_ADDRESS === undefined || !hasIsolatedProcesses()) {
    throw new Error('bubblewrap, slirp4netns and an address besides loopback are needed');
  }
  const environment = path.dirname(path.dirname(python));
  return {
    ...asProcess(python),
    environment: {
      SANDBOX_NETWORK: 'isolated',
      SANDBOX_CREDENTIALS: 'outside',
      SANDBOX_EGRESS_PORT: String(await reservedPort()),
      SANDBOX_READ_PATHS: `${environment},${environment}-python`,
    },
    host: OWN_ADDRESS,
  };
}

/**
 * @param image that starts it, on the nodes of the cluster of KUBECONFIG
 * @throws Error when there is no such cluster
 */
export async function inPods(image: string, folder: string): Promise<Place> {
  const missing = await missingForCluster(KUBECONFIG);
  if (missing !== null) {
    throw new Error(missing);
  }
  const cluster = await TestCluster.open(KUBECONFIG);
  const access = await cluster.access(folder);
  return {
    spec: {
      id: 'stock',
      agent_server: 'openhands',
      image,
      args: ['--port', '{port}'],
      working_dir: '/workspace/project',
      start_timeout_seconds: START_SECONDS,
      env: VARIABLES,
    },
    environment: { ...cluster.variables(access), ...(await cluster.variablesOfProcess()) },
    host: cluster.hostAddress,
    close: () => cluster.close(),
  };
}
