import path from 'node:path';
import { parseDestination } from '../common/http/network-destination.js';
import {
  ChoiceVariable,
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
} from './variables.js';

/** A container label, a queue's name and a folder can all hold this. */
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const LABEL_EXPECTED = 'must be 1 to 63 letters, digits or . _ -, beginning with a letter or digit';

/** RFC 1123, as Kubernetes asks for. */
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const DNS_LABEL_EXPECTED = 'must be 1 to 63 lower-case letters, digits or -, as names in Kubernetes are';
const DNS_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
const DNS_NAME_EXPECTED = 'must be lower-case letters, digits, . or -, as names in Kubernetes are';
const POD_PEER = /^(?:[\da-f.:]+\/\d{1,3}|[A-Za-z0-9./_-]+=[A-Za-z0-9._-]+)$/;

export class SandboxConfig {
  @ChoiceVariable('SANDBOX_BACKEND', ['process', 'docker', 'kubernetes'], { default: 'process' })
  backend: 'process' | 'docker' | 'kubernetes';

  @MatchingVariable(
    'SANDBOX_IMAGE',
    /^[A-Za-z0-9][\w.:@-]*(\/[A-Za-z0-9][\w.:@-]*)*$/,
    'must be the name of an image, such as registry.example.com/slipway-agent-server:1.0',
    { default: 'slipway-agent-server' },
  )
  image: string;

  @PathVariable('SANDBOX_SPECS_FILE')
  specsFile: string | null;

  /** For the process backend. */
  @ChoiceVariable('SANDBOX_ISOLATION', ['auto', 'bwrap', 'none'], {
    default: 'auto',
  })
  isolation: 'auto' | 'bwrap' | 'none';

  /** Process sandboxes can read these besides the system, and cannot change them. */
  @ListVariable(
    'SANDBOX_READ_PATHS',
    Satisfies(
      (entries) =>
        Array.isArray(entries) &&
        entries.every((entry) => path.isAbsolute(String(entry)) && path.resolve(String(entry)) !== '/'),
      'must be a comma list of absolute paths (/opt/tools), not of the root folder',
    ),
  )
  readPaths: string[];

  /** `auto`: process sandboxes have networks of their own where that works. */
  @ChoiceVariable('SANDBOX_NETWORK', ['auto', 'isolated', 'shared'], { default: 'auto' })
  network: 'auto' | 'isolated' | 'shared';

  /** Destinations that are not public, but that process sandboxes with their own networks reach. */
  @ListVariable(
    'SANDBOX_NETWORK_ALLOW',
    Satisfies(
      (entries) =>
        Array.isArray(entries) && entries.every((entry) => parseDestination(String(entry)) !== null),
      'must be a comma list of ranges (10.20.0.0/16), hosts (git.example.com) and ports of this machine (localhost:11434)',
    ),
  )
  networkAllow: string[];

  /** Lets several users have process sandboxes without isolation from each other. */
  @SwitchVariable('ALLOW_UNSANDBOXED', false)
  allowUnsandboxed: boolean;

  /** Null: the id kept in `DATA_DIR`. */
  @MatchingVariable('HOST_ID', LABEL, LABEL_EXPECTED)
  hostId: string | null;

  /** Labels what this installation made; null: the id kept in the database. */
  @MatchingVariable('INSTANCE_ID', LABEL, LABEL_EXPECTED)
  instanceId: string | null;

  /** How agent servers reach the service, without a trailing slash; null: derived. */
  @UrlVariable('SANDBOX_CALLBACK_URL')
  callbackUrl: string | null;

  @MatchingVariable('SANDBOX_DOCKER_NETWORK', /^[A-Za-z0-9][\w.-]*$/, 'must be the name of a Docker network')
  dockerNetwork: string | null;

  /** Where other hosts reach this machine's sandboxes; null: loopback only. */
  @MatchingVariable(
    'SANDBOX_ADDRESS',
    /^[A-Za-z0-9.:-]+$/,
    'must be a host name or an IP address, without scheme and port',
  )
  address: string | null;

  /** By default `ports` where only this machine reaches the service, else `path`. */
  @ChoiceVariable('SANDBOX_EXPOSE', ['ports', 'hosts', 'path'])
  expose: 'ports' | 'hosts' | 'path';

  /** Ports that agents open have host names below this; null: below `localhost` if `PUBLIC_URL` names this machine. */
  @UrlVariable(
    'SANDBOX_PORTS_URL',
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

  @MatchingVariable(
    'DOCKER_HOST',
    /^(unix|tcp|https?|npipe):\/\/./,
    'must be the address of a Docker engine, such as unix:///var/run/docker.sock',
  )
  dockerHost: string | null;

  /** One or several paths, as `kubectl` takes them; null: the service account of the service's pod. */
  @TextVariable('KUBECONFIG')
  kubeconfig: string | null;

  /** Null: the service's own namespace, else `slipway-sandboxes`. */
  @MatchingVariable('SANDBOX_NAMESPACE', DNS_LABEL, DNS_LABEL_EXPECTED)
  namespace: string | null;

  /** At the addresses of pods, or through the API server. */
  @ChoiceVariable('SANDBOX_REACH', ['pod', 'proxy'], { default: 'pod' })
  reach: 'pod' | 'proxy';

  @MatchingVariable(
    'SANDBOX_VOLUME_SIZE',
    /^[1-9]\d*(Mi|Gi|Ti|M|G|T)$/,
    'must be a size such as 10Gi or 500Mi',
    { default: '10Gi' },
  )
  volumeSize: string;

  @MatchingVariable('SANDBOX_STORAGE_CLASS', DNS_NAME, DNS_NAME_EXPECTED)
  storageClass: string | null;

  /** For example gVisor; null: the cluster's default. */
  @MatchingVariable('SANDBOX_RUNTIME_CLASS', DNS_NAME, DNS_NAME_EXPECTED)
  runtimeClass: string | null;

  /** Names the secrets that images are pulled with; its token is in no pod. */
  @MatchingVariable('SANDBOX_SERVICE_ACCOUNT', DNS_NAME, DNS_NAME_EXPECTED)
  serviceAccount: string | null;

  /** Ranges and pod labels (`name=value`); empty: detected. */
  @ListVariable(
    'SANDBOX_REACHED_FROM',
    Satisfies(
      (entries) => Array.isArray(entries) && entries.every((entry) => POD_PEER.test(String(entry))),
      'must be a comma list of ranges (10.20.0.0/16) and labels of pods (app.kubernetes.io/name=slipway)',
    ),
  )
  reachedFrom: string[];

  @SecondsVariable('SANDBOX_NODE_WAIT_SECONDS', '4')
  nodeWaitSeconds: number;

  @IntegerVariable('MAX_RUNNING_SANDBOXES', {
    default: '5',
    minimum: 1,
    maximum: 10_000,
    message: 'must be a whole number from 1 to 10000',
  })
  maxRunning: number;

  @IntegerVariable('MAX_SANDBOXES_PER_USER', {
    default: '1000',
    minimum: 1,
    maximum: 1_000_000,
    message: 'must be a whole number from 1 to 1000000',
  })
  maxStored: number;

  /** The longest idle sandbox is paused, or the request is refused. */
  @ChoiceVariable('SANDBOX_LIMIT_POLICY', ['pause_oldest_idle', 'reject'], { default: 'pause_oldest_idle' })
  limitPolicy: 'pause_oldest_idle' | 'reject';

  /** Of each specification, before they are requested. */
  @IntegerVariable('SANDBOX_WARM', {
    default: '0',
    minimum: 0,
    maximum: 1_000,
    message: 'must be a whole number from 0 to 1000',
  })
  warm: number;

  /** 0: never. */
  @SecondsVariable('SANDBOX_IDLE_TIMEOUT_SECONDS', '1800', 'never pause')
  idleTimeoutSeconds: number;

  /** For sandboxes that do not run; 0: never. */
  @SecondsVariable('SANDBOX_RETENTION_SECONDS', '0', 'keep them')
  retentionSeconds: number;

  @SecondsVariable('SANDBOX_WAIT_SECONDS', '600')
  waitSeconds: number;

  /** Sandboxes of this installation without a row are removed from this age on. */
  @SecondsVariable('SANDBOX_ORPHAN_GRACE_SECONDS', '60')
  orphanGraceSeconds: number;

  @IntegerVariable('SANDBOX_PROCESSES', {
    default: '512',
    minimum: 32,
    maximum: 1_000_000,
    message: 'must be a whole number from 32 to 1000000',
  })
  processes: number;

  /** Mebibytes of one process sandbox; 0: unlimited. */
  @IntegerVariable('SANDBOX_DISK_MB', {
    default: '10240',
    minimum: 0,
    message: 'must be a whole number of megabytes, 0 for no limit',
  })
  diskMb: number;

  @IntegerVariable('SANDBOX_DISK_RESERVE_MB', {
    default: '512',
    minimum: 0,
    message: 'must be a whole number of megabytes',
  })
  diskReserveMb: number;

  /** For programs of process sandboxes: paths, language, proxies, CAs. */
  environment: Readonly<Record<string, string>>;
}
