import path from 'node:path';
import { z } from 'zod';
import { parseDestination } from '@slipway/common/http/address-rules.js';
import { parseJson } from '@slipway/common/json-access.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import {
  ChoiceVariable,
  For,
  FromVariable,
  hasNamesBelow,
  IntegerVariable,
  ListVariable,
  MatchingVariable,
  PathVariable,
  Satisfies,
  SecondsVariable,
  SwitchVariable,
  TextVariable,
  UrlVariable,
} from '@slipway/configuration/variables.js';

/** A container label, a queue's name and a folder can all hold this. */
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const LABEL_EXPECTED = 'must be 1 to 63 letters, digits or . _ -, beginning with a letter or digit';

/** RFC 1123, as Kubernetes asks for. */
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const DNS_LABEL_EXPECTED = 'must be 1 to 63 lower-case letters, digits or -, as names in Kubernetes are';
const DNS_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
const DNS_NAME_EXPECTED = 'must be lower-case letters, digits, . or -, as names in Kubernetes are';
const POD_PEER = /^(?:[\da-f.:]+\/\d{1,3}|[A-Za-z0-9./_-]+=[A-Za-z0-9._-]+)$/;

const names = namedValues(z.string(), z.string()).optional();
const object = namedValues(z.string(), z.unknown()).optional();
const list = z.array(z.unknown()).optional();
const word = z.string().optional();

/** What operators add to the pods of sandboxes, by the names of Kubernetes; the rest of a pod is ours. */
export const podTemplateSchema = z.strictObject({
  metadata: z.strictObject({ labels: names, annotations: names }).optional(),
  spec: z
    .strictObject({ nodeSelector: names, affinity: object, securityContext: object, dnsConfig: object })
    .extend({ tolerations: list, topologySpreadConstraints: list, imagePullSecrets: list, hostAliases: list })
    .extend({ priorityClassName: word, schedulerName: word, dnsPolicy: word })
    .optional(),
});

export class SandboxConfig {
  @ChoiceVariable(
    'SANDBOX_BACKEND',
    'Where sandboxes run: as processes of this machine, containers or pods.',
    ['process', 'docker', 'kubernetes'],
    { default: 'process' },
  )
  backend: 'process' | 'docker' | 'kubernetes';

  @For('docker', 'kubernetes')
  @MatchingVariable(
    'SANDBOX_IMAGE',
    'Image of our agent server. Docker pulls it only when its name has a `/`.',
    /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/,
    'must be the name of an image, such as registry.example.com/slipway-agent-server:1.0',
    { default: 'slipway-agent-server' },
  )
  image: string;

  @PathVariable(
    'SANDBOX_SPECS_FILE',
    'YAML or JSON list of sandbox specifications, of which the first is the default. By default there is one for our agent server.',
  )
  specsFile: string | null;

  @For('process')
  @ChoiceVariable(
    'SANDBOX_ISOLATION',
    'What separates sandboxes: bubblewrap, nothing, or bubblewrap where it works. The image says `bwrap`.',
    ['auto', 'bwrap', 'none'],
    { default: 'auto' },
  )
  isolation: 'auto' | 'bwrap' | 'none';

  @For('process')
  @ListVariable(
    'SANDBOX_READ_PATHS',
    'Files and folders of this machine that isolated sandboxes see besides its system, read-only.',
    Satisfies(
      (entries) =>
        Array.isArray(entries) &&
        entries.every((entry) => path.isAbsolute(String(entry)) && path.resolve(String(entry)) !== '/'),
      'must be a comma list of absolute paths (/opt/tools), not of the root folder',
    ),
  )
  readPaths: string[];

  @For('process')
  @ChoiceVariable(
    'SANDBOX_NETWORK',
    "Whether each sandbox has a network of its own or shares the machine's; `auto`: its own where bubblewrap and slirp4netns work.",
    ['auto', 'isolated', 'shared'],
    { default: 'auto' },
  )
  network: 'auto' | 'isolated' | 'shared';

  @ListVariable(
    'SANDBOX_NETWORK_ALLOW',
    'What sandboxes with networks of their own, and containers with rules, reach besides public addresses.',
    Satisfies(
      (entries) =>
        Array.isArray(entries) && entries.every((entry) => parseDestination(String(entry)) !== null),
      'must be a comma list of ranges (10.20.0.0/16), hosts (git.example.com) and ports of this machine (localhost:11434)',
    ),
  )
  networkAllow: string[];

  @For('process')
  @SwitchVariable('ALLOW_UNSANDBOXED', 'Whether several users may have sandboxes without isolation.', false)
  allowUnsandboxed: boolean;

  @MatchingVariable(
    'HOST_ID',
    'The machine whose sandboxes this replica looks after, the same for all replicas on it. By default kept in `DATA_DIR/host-id`.',
    LABEL,
    LABEL_EXPECTED,
  )
  hostId: string | null;

  @MatchingVariable(
    'INSTANCE_ID',
    'Value of the label `slipway.instance`, by which the service recognises its sandboxes. By default kept in the database.',
    LABEL,
    LABEL_EXPECTED,
  )
  instanceId: string | null;

  @UrlVariable(
    'SANDBOX_CALLBACK_URL',
    'How agent servers reach the service. By default loopback for processes, `host.docker.internal` or our own container for docker, an address of the machine or the pod for kubernetes.',
  )
  callbackUrl: string | null;

  @For('docker')
  @MatchingVariable(
    'SANDBOX_DOCKER_NETWORK',
    'Network of the service where it runs in a container. Sandboxes then publish no ports; each has a network with the containers in this one.',
    /^[A-Za-z0-9][\w.-]*$/,
    'must be the name of a Docker network',
  )
  dockerNetwork: string | null;

  @For('docker')
  @MatchingVariable(
    'SANDBOX_DOCKER_SUBNETS',
    'Range of these networks of sandboxes, of 16 addresses each.',
    /^\d{1,3}\.(0\.0\.0\/8|\d{1,3}\.(0\.0\/16|\d{1,3}\.0\/24))$/,
    'must be a /8, /16 or /24 of IPv4 addresses, such as 198.18.0.0/16',
    { default: '198.18.0.0/16' },
  )
  dockerSubnets: string;

  @MatchingVariable(
    'SANDBOX_ADDRESS',
    'Host name or IP address of this machine at which replicas on other machines reach its sandboxes.',
    /^[A-Za-z0-9.:-]+$/,
    'must be a host name or an IP address, without scheme and port',
  )
  address: string | null;

  @ChoiceVariable(
    'SANDBOX_EXPOSE',
    'How clients reach agent servers. By default `ports` where only this machine reaches the service, else `path`.',
    ['ports', 'hosts', 'path'],
  )
  expose: 'ports' | 'hosts' | 'path';

  @UrlVariable(
    'SANDBOX_PORTS_URL',
    'Below this name each port of a sandbox has a host name, such as `https://apps.example.com`. By default below `localhost` where `PUBLIC_URL` names this machine, else ports have none.',
    {},
    Satisfies(
      (address) => /^https?:\/\/[^/?#@]+$/.test(String(address)),
      'must be scheme and host name (and port), without a path',
    ),
    Satisfies(
      (address) => hasNamesBelow(String(address)),
      'must have a host name that others can be below, and no IP address',
    ),
  )
  portsUrl: string | null;

  @For('docker')
  @MatchingVariable(
    'DOCKER_HOST',
    'The engine, `unix://…` or `tcp://…`. By default its usual socket.',
    /^(unix|tcp|https?|npipe):\/\/./,
    'must be the address of a Docker engine, such as unix:///var/run/docker.sock',
  )
  dockerHost: string | null;

  @For('kubernetes')
  @TextVariable(
    'KUBECONFIG',
    "File with the cluster and its credentials, for a service outside of it. By default the pod's service account.",
  )
  kubeconfig: string | null;

  @For('kubernetes')
  @MatchingVariable(
    'SANDBOX_NAMESPACE',
    "Namespace of the sandboxes, which must exist. By default the service's own, else `slipway-sandboxes`.",
    DNS_LABEL,
    DNS_LABEL_EXPECTED,
  )
  namespace: string | null;

  @For('kubernetes')
  @ChoiceVariable(
    'SANDBOX_REACH',
    'How replicas reach pods: at their addresses, or through the API server.',
    ['pod', 'proxy'],
    { default: 'pod' },
  )
  reach: 'pod' | 'proxy';

  @For('kubernetes')
  @MatchingVariable(
    'SANDBOX_VOLUME_SIZE',
    'Volume of each new sandbox.',
    /^[1-9]\d*(Mi|Gi|Ti|M|G|T)$/,
    'must be a size such as 10Gi or 500Mi',
    { default: '10Gi' },
  )
  volumeSize: string;

  @For('kubernetes')
  @MatchingVariable(
    'SANDBOX_STORAGE_CLASS',
    "Storage class of these volumes. By default the cluster's.",
    DNS_NAME,
    DNS_NAME_EXPECTED,
  )
  storageClass: string | null;

  @For('kubernetes')
  @MatchingVariable(
    'SANDBOX_RUNTIME_CLASS',
    "What runs the containers, such as gVisor or Kata; `runtime` of a specification overrides it. By default the cluster's.",
    DNS_NAME,
    DNS_NAME_EXPECTED,
  )
  runtimeClass: string | null;

  @For('kubernetes')
  @MatchingVariable(
    'SANDBOX_SERVICE_ACCOUNT',
    "Service account of the pods, for its `imagePullSecrets`; its token is never mounted. By default the namespace's.",
    DNS_NAME,
    DNS_NAME_EXPECTED,
  )
  serviceAccount: string | null;

  @For('kubernetes')
  @FromVariable(
    'SANDBOX_POD_TEMPLATE',
    'Labels, annotations, node selector, tolerations, priority class, pull secrets and the like of the pods, as a merge patch of a pod template; `pod.template` of a specification is applied after it.',
    { absent: {}, form: 'JSON, by the names of Kubernetes', convert: (text) => parseJson(text) ?? text },
    Satisfies(
      (template) => podTemplateSchema.safeParse(template).success,
      `must be JSON such as {"metadata":{"labels":{}},"spec":{"tolerations":[]}}, with labels and annotations, and of spec ${Object.keys(podTemplateSchema.shape.spec.unwrap().shape).join(', ')}`,
    ),
  )
  podTemplate: z.infer<typeof podTemplateSchema>;

  @For('kubernetes')
  @ListVariable(
    'SANDBOX_REACHED_FROM',
    "What may connect to sandboxes by the network policy. By default the service's own pods or addresses.",
    Satisfies(
      (entries) => Array.isArray(entries) && entries.every((entry) => POD_PEER.test(String(entry))),
      'must be a comma list of ranges (10.20.0.0/16) and labels of pods (app.kubernetes.io/name=slipway)',
    ),
  )
  reachedFrom: string[];

  @For('kubernetes')
  @SecondsVariable(
    'SANDBOX_NODE_WAIT_SECONDS',
    'How long a pod may wait for a node with room before its sandbox becomes ERROR. Longer where nodes are added on demand.',
    '4',
  )
  nodeWaitSeconds: number;

  @IntegerVariable('MAX_RUNNING_SANDBOXES', 'Sandboxes of one user that may run at once.', {
    default: '5',
    minimum: 1,
    maximum: 10_000,
  })
  maxRunning: number;

  @IntegerVariable(
    'MAX_SANDBOXES_PER_USER',
    'Sandboxes that one user may have, paused ones included. One more is refused with 409 `stored_sandbox_limit`.',
    { default: '1000', minimum: 1, maximum: 1_000_000 },
  )
  maxStored: number;

  @ChoiceVariable(
    'SANDBOX_LIMIT_POLICY',
    'How room is made for one more running sandbox: the one that has been idle for longest is paused, or the request is refused with 429.',
    ['pause_oldest_idle', 'reject'],
    { default: 'pause_oldest_idle' },
  )
  limitPolicy: 'pause_oldest_idle' | 'reject';

  @IntegerVariable(
    'SANDBOX_WARM',
    'Sandboxes of each specification that are kept started for the next users.',
    { default: '0', minimum: 0, maximum: 1_000 },
  )
  warm: number;

  @SecondsVariable(
    'SANDBOX_IDLE_TIMEOUT_SECONDS',
    'A sandbox without activity for this long is paused. One that does not respond for ten minutes after that is stopped, with an error.',
    '1800',
    'never pause',
  )
  idleTimeoutSeconds: number;

  @SecondsVariable(
    'SANDBOX_RETENTION_SECONDS',
    'A sandbox that has not run for this long is removed with its files.',
    '0',
    'keep them',
  )
  retentionSeconds: number;

  @SecondsVariable(
    'SANDBOX_WAIT_SECONDS',
    'How long the start of a conversation waits while all sandboxes of the user are busy.',
    '600',
  )
  waitSeconds: number;

  @SecondsVariable(
    'SANDBOX_ORPHAN_GRACE_SECONDS',
    'A sandbox with our label but without a row is removed when it is older than this.',
    '60',
  )
  orphanGraceSeconds: number;

  @For('process', 'docker')
  @IntegerVariable('SANDBOX_PROCESSES', 'Processes and threads of one sandbox.', {
    default: '512',
    minimum: 32,
    maximum: 1_000_000,
  })
  processes: number;

  @For('process', 'docker')
  @IntegerVariable(
    'SANDBOX_DISK_MB',
    'What the files of one sandbox may take; a larger one is stopped with an error that says so.',
    { default: '10240', minimum: 0, unit: 'megabytes', zero: 'for no limit' },
  )
  diskMb: number;

  @For('process', 'docker')
  @IntegerVariable(
    'SANDBOX_DISK_RESERVE_MB',
    "Free space that must remain on the sandboxes' disk: with less none starts, and the process sandbox that has grown most is stopped.",
    { default: '512', minimum: 0, unit: 'megabytes' },
  )
  diskReserveMb: number;

  /** Variables for programs in process sandboxes: paths, language, proxies, CAs. */
  environment: Readonly<Record<string, string>>;
}
