import type { V1Container, V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { jsonAt, jsonList, type JsonObject, jsonText, mergePatch } from '@slipway/common/json-access.js';
import {
  BUNDLE_VARIABLES,
  egressVariables,
  foreignAuthority,
  portVariables,
  proxyVariables,
  SERVICE_VARIABLES,
} from '../launch-variables.js';
import {
  AGENT_PORT,
  AGENT_SERVER_COMMAND,
  AGENT_SERVER_FOLDER,
  AGENT_SERVER_NODE,
  AGENT_USER,
  EVERY_ADDRESS,
  INSTANCE_LABEL,
  SANDBOX_LABEL,
  sandboxLayout,
  type SandboxLayout,
} from '../container-layout.js';
import type { ProgramLaunch } from '../sandbox-backend.js';
import type { KubernetesBackendOptions } from './kubernetes.options.js';
import { EGRESS_LABEL, REACHES_PROXY } from './policy-rules.js';

export const SANDBOX_GROUP = 'agents.x-k8s.io';
export const SANDBOX_API = `${SANDBOX_GROUP}/v1beta1`;
export const AGENT_CONTAINER = 'agent';
/** This init container copies our agent server into images without it. */
const COPY_CONTAINER = 'agent-server';
export const PORTS_ANNOTATION = 'slipway.ports';
/** Uid of the pod that was given its session key; set on the Sandbox until the next start. */
export const POD_ANNOTATION = 'slipway.pod';

/** This one writes what a stock image trusts: the authorities of Node.js and that of the sandbox. */
const BUNDLE_CONTAINER = 'authorities';
const BUNDLE = '/etc/slipway-authorities/bundle.pem';
const WRITE_BUNDLE = `require('node:fs').writeFileSync('${BUNDLE}', [...require('node:tls').rootCertificates, process.env.AUTHORITY, ''].join('\\n'))`;
const BUNDLE_MOUNT = { name: BUNDLE_CONTAINER, mountPath: '/etc/slipway-authorities' };
const COPY_RESOURCES = { limits: { cpu: '1', memory: '256Mi' }, requests: { cpu: '10m', memory: '16Mi' } };

const VOLUME = 'files';
const TEMPORARY = 'tmp';
/** May read our agent server's files, which the agent's own user must not. No user: OpenShift gives those itself. */
const COPY_GROUP = 10_002;
/** Pods share their node, so they request less than they may use. */
const PROMISED_CPU = 0.05;
const PROMISED_MEMORY = 1 / 16;
const MIN_MILLICPU = 10;
const MEBIBYTES = 'Mi';
const RESTRICTED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  privileged: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
};

type ManifestOptions = Omit<
  KubernetesBackendOptions,
  'kubeconfig' | 'namespace' | 'reach' | 'reachedFrom' | 'allow' | 'egress' | 'callbackUrl' | 'nodeWaitMs'
>;

/** A launch with the address of the egress proxy, in brackets where it is one of IPv6. */
export type PodLaunch = ProgramLaunch & { proxyHost?: string };

/** Names have no answer, at once: without a name server, programs would wait for the one of the cluster. */
const NO_NAMES = { dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } };

/** The members of a kubernetes-sigs/agent-sandbox Sandbox that are set here. */
interface SandboxManifest {
  apiVersion: typeof SANDBOX_API;
  kind: 'Sandbox';
  metadata: ObjectMetadata & { name: string };
  spec: {
    operatingMode: 'Running';
    podTemplate: PodTemplate;
    volumeClaimTemplates: Pick<V1PersistentVolumeClaim, 'metadata' | 'spec'>[];
  };
}

interface ObjectMetadata {
  labels: Record<string, string>;
  annotations?: Record<string, string>;
}

interface PodTemplate {
  metadata: ObjectMetadata;
  spec: JsonObject;
}

/** Name of a Sandbox and of its pod: hexadecimal, because names have no upper case and ids of base62 do. */
export function sandboxObjectName(id: string): string {
  return `sbx-${Buffer.from(id, 'utf8').toString('hex')}`;
}

/** Name of the volume claim that the controller makes. */
export function volumeName(objectName: string): string {
  return `${VOLUME}-${objectName}`;
}

/** @throws SandboxBackendError when a pod cannot run the program or use its working folder */
export function sandboxManifest(launch: PodLaunch, options: ManifestOptions): SandboxManifest {
  const template = podTemplate(launch, options);
  const { labels } = template.metadata;
  const storageClass = launch.pod?.storageClass ?? options.storageClass;
  return {
    apiVersion: SANDBOX_API,
    kind: 'Sandbox',
    metadata: { name: sandboxObjectName(launch.id), labels },
    spec: {
      operatingMode: 'Running',
      podTemplate: template,
      volumeClaimTemplates: [
        {
          metadata: { name: VOLUME, labels },
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: { storage: launch.pod?.volumeSize ?? options.volumeSize } },
            ...(storageClass !== null && { storageClassName: storageClass }),
          },
        },
      ],
    },
  };
}

/** Meets the pod security standard `restricted`. @throws SandboxBackendError for a program that a pod cannot run */
export function podTemplate(launch: PodLaunch, options: ManifestOptions): PodTemplate {
  const layout = sandboxLayout(launch, options.defaultImage);
  // The API cannot say whether an image has our agent server, so ours is copied into every other image.
  const isCopied = launch.program.kind === 'native' && layout.image !== options.defaultImage;
  const authority = foreignAuthority(launch);
  const initContainers = [
    ...(isCopied ? [copyContainer(options)] : []),
    ...(authority === null ? [] : [bundleContainer(authority, options)]),
  ];
  const memoryMb = launch.memoryMb ?? options.memoryMb;
  const runtimeClass = launch.runtime ?? options.runtimeClass;
  const serviceAccount = launch.pod?.serviceAccount ?? options.serviceAccount;
  const patches = [options.podTemplate, launch.pod?.template ?? {}];
  const added = (member: 'labels' | 'annotations', own: Record<string, string>): Record<string, string> =>
    patches.toReversed().reduce((all, { metadata }) => ({ ...metadata?.[member], ...all }), own);
  const spec = {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    // The node's pause program becomes the first process and reaps orphans. A first process also ignores SIGTERM
    // until it has a handler, so an agent server that is still loading would use up its grace time.
    shareProcessNamespace: true,
    terminationGracePeriodSeconds: options.graceSeconds,
    ...(runtimeClass !== null && { runtimeClassName: runtimeClass }),
    ...(serviceAccount !== null && { serviceAccountName: serviceAccount }),
    securityContext: {
      runAsNonRoot: true,
      runAsUser: AGENT_USER,
      runAsGroup: AGENT_USER,
      fsGroup: AGENT_USER,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
    },
    ...(initContainers.length > 0 && { initContainers }),
    containers: [agentContainer(launch, layout, isCopied, options)],
    volumes: [
      // Memory bounds it at once; a folder of the node is only measured at intervals.
      {
        name: TEMPORARY,
        emptyDir: { medium: 'Memory', sizeLimit: `${Math.floor(memoryMb / 2)}${MEBIBYTES}` },
      },
      ...initContainers.map(({ name }) => ({ name, emptyDir: {} })),
    ],
  };
  return {
    metadata: {
      labels: added('labels', labelsOf(launch, options)),
      annotations: added('annotations', { [PORTS_ANNOTATION]: JSON.stringify(launch.ports) }),
    },
    spec: {
      ...patches.reduce<JsonObject>((all, patch) => mergePatch(all, patch.spec ?? {}), spec),
      ...(launch.egress?.isOnlyWay && NO_NAMES),
    },
  };
}

/** Of a template, ours or one from the cluster: the label that policies go by, and the proxy with its address. */
export function wayOut(template: unknown): string {
  const agent = named(jsonList(template, 'spec', 'containers'), AGENT_CONTAINER);
  const proxy = jsonText(named(jsonList(agent, 'env'), 'HTTPS_PROXY'), 'value');
  return JSON.stringify([jsonText(jsonAt(template, 'metadata', 'labels'), EGRESS_LABEL), proxy]);
}

function named(list: unknown[], name: string): unknown {
  return list.find((each) => jsonText(each, 'name') === name);
}

function agentContainer(
  launch: PodLaunch,
  layout: SandboxLayout,
  isCopied: boolean,
  options: ManifestOptions,
): V1Container {
  const { egress, proxyHost = '' } = launch;
  const trusted = foreignAuthority(launch) === null ? [] : BUNDLE_VARIABLES;
  const env = {
    ...Object.fromEntries(trusted.map((name) => [name, BUNDLE])),
    ...(egress === undefined && proxyVariables(options.environment, launch, false)),
    ...layout.env,
    ...(egress !== undefined && egressVariables(launch, egress, proxyHost)),
    ...portVariables(launch.ports, EVERY_ADDRESS),
  };
  const isNative = launch.program.kind === 'native';
  const variables = { ...env, ...(isNative && { [SERVICE_VARIABLES]: Object.keys(env).join(',') }) };
  const cpu = Math.round((launch.cpu ?? options.cpu) * 1000);
  const memoryMb = launch.memoryMb ?? options.memoryMb;
  const folders = [layout.folder, ...(layout.secondFolder === null ? [] : [layout.secondFolder])];
  return {
    name: AGENT_CONTAINER,
    image: layout.image,
    imagePullPolicy: 'IfNotPresent',
    ...(isCopied && { command: AGENT_SERVER_COMMAND }),
    ...(layout.args && { args: layout.args.map(literal) }),
    env: Object.entries(variables).map(([name, value]) => ({ name, value: literal(value) })),
    workingDir: layout.folder,
    // Every user may write this file of the node without limit, so it is where the agent's user has no access.
    terminationMessagePath: '/root/termination-log',
    ...(layout.keyOnStdin && { stdin: true, stdinOnce: true }),
    ports: [AGENT_PORT, ...Object.values(launch.ports)].map((containerPort) => ({ containerPort })),
    readinessProbe: { httpGet: { path: '/alive', port: AGENT_PORT }, periodSeconds: 1, timeoutSeconds: 2 },
    resources: {
      limits: { cpu: `${cpu}m`, memory: `${memoryMb}${MEBIBYTES}` },
      requests: {
        cpu: `${Math.max(Math.round(cpu * PROMISED_CPU), MIN_MILLICPU)}m`,
        memory: `${Math.ceil(memoryMb * PROMISED_MEMORY)}${MEBIBYTES}`,
      },
    },
    securityContext: RESTRICTED,
    volumeMounts: [
      ...folders.map((mountPath) => ({ name: VOLUME, mountPath })),
      { name: TEMPORARY, mountPath: '/tmp' },
      ...(isCopied ? [{ name: COPY_CONTAINER, mountPath: AGENT_SERVER_FOLDER, readOnly: true }] : []),
      ...(trusted.length > 0 ? [{ ...BUNDLE_MOUNT, readOnly: true }] : []),
    ],
  };
}

function bundleContainer(
  authority: string,
  { defaultImage }: Pick<ManifestOptions, 'defaultImage'>,
): V1Container {
  return {
    name: BUNDLE_CONTAINER,
    image: defaultImage,
    imagePullPolicy: 'IfNotPresent',
    command: [AGENT_SERVER_NODE, '-e', WRITE_BUNDLE],
    env: [{ name: 'AUTHORITY', value: literal(authority) }],
    resources: COPY_RESOURCES,
    securityContext: RESTRICTED,
    volumeMounts: [BUNDLE_MOUNT],
  };
}

function copyContainer({ defaultImage }: Pick<ManifestOptions, 'defaultImage'>): V1Container {
  const target = '/copy';
  const script = [
    // A node that restarts may repeat it.
    `cp -Rf ${AGENT_SERVER_FOLDER}/. ${target}/`,
    // The agent's user owns the copy, and gets it read-only.
    `chmod 0111 ${target}/bin/node`,
    `chmod -R go-w ${target}/*`,
  ].join(' && ');
  return {
    name: COPY_CONTAINER,
    image: defaultImage,
    imagePullPolicy: 'IfNotPresent',
    command: ['sh', '-c', script],
    resources: COPY_RESOURCES,
    securityContext: { runAsGroup: COPY_GROUP, ...RESTRICTED },
    volumeMounts: [{ name: COPY_CONTAINER, mountPath: target }],
  };
}

function labelsOf({ id, egress }: ProgramLaunch, { instanceId }: ManifestOptions): Record<string, string> {
  const labels = { [INSTANCE_LABEL]: instanceId, [SANDBOX_LABEL]: id };
  return egress?.isOnlyWay ? { ...labels, [EGRESS_LABEL]: REACHES_PROXY } : labels;
}

/** Kubernetes replaces `$(NAME)` in variables and arguments, and takes `$$` for a dollar sign. */
function literal(value: string): string {
  return value.replaceAll('$', () => '$$');
}
