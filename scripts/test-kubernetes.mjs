// Runs the tests that need a cluster: contracts, journeys, faults, rights and the deployment of deploy/kubernetes.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

const [part = String.raw`(test|sandboxes/src)/kubernetes/`] =
  COMMAND_LINES['scripts/test-kubernetes.mjs'].parse().processedArgs;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const AGENT_SANDBOX = 'apis/agents.x-k8s.io/v1beta1';
/** A small node cannot run the pods of more test files at a time. */
const WORKERS = '2';

const HELP = `npm run test:kubernetes runs against the cluster of KUBECONFIG, in namespaces that it creates and removes. It needs

  a cluster      any whose administrator you are. One of your own: kind create cluster (https://kind.sigs.k8s.io), or k3d,
                 minikube, k3s. Then: export KUBECONFIG=$HOME/.kube/config
  agent-sandbox  0.5 or newer, also 1.0: kubectl apply -f of sandbox.yaml of a release of
                 https://github.com/kubernetes-sigs/agent-sandbox
  kubectl        on PATH
  three images   on its nodes, as deploy/kubernetes/README.md builds them:
                 slipway:trial, slipway-agent-server:trial, slipway-postgres:trial
                 (with kind: kind load docker-image slipway:trial slipway-agent-server:trial slipway-postgres:trial)
  an address     of this machine that pods can reach, since models and git servers of the tests run here. It is found if this
                 machine is a node of the cluster; else set SLIPWAY_TEST_HOST_ADDRESS (with kind: the gateway of its network)
`;

function kubectl(...args) {
  const { status, error, stdout, stderr } = spawnSync('kubectl', args, { encoding: 'utf8' });
  return { ok: status === 0, text: error ? `kubectl: ${error.message}` : `${stdout}${stderr}`.trim() };
}

/** What is missing, in one line; null when nothing is. */
function missing() {
  const file = process.env['KUBECONFIG'] ?? '';
  if (file === '') {
    return 'KUBECONFIG names no cluster';
  }
  if (!existsSync(file)) {
    return `KUBECONFIG names ${file}, which is not there`;
  }
  const server = kubectl('get', '--raw', '/readyz');
  if (!server.ok) {
    return `the cluster does not answer: ${server.text}`;
  }
  return kubectl('get', '--raw', `/${AGENT_SANDBOX}`).ok
    ? null
    : `the cluster has no ${AGENT_SANDBOX}: agent-sandbox is not installed`;
}

const problem = missing();
if (problem === null) {
  const jest = path.join(ROOT, 'node_modules/jest/bin/jest.js');
  const args = [
    ['--max-semi-space-size=32', '--disable-warning=ExperimentalWarning', jest],
    ['--maxWorkers', WORKERS, '--testPathPatterns', part],
    ['--config', 'jest.system.config.mjs'],
  ].flat();
  const { status, error } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, SLIPWAY_TEST_KUBECONFIG: path.resolve(process.env['KUBECONFIG'] ?? '') },
  });
  if (error) {
    throw error;
  }
  process.exitCode = status ?? 1;
} else {
  process.stderr.write(`Nothing was tested: ${problem}.\n\n${HELP}`);
  process.exitCode = 1;
}
