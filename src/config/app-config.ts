import { MaxLength, MinLength } from 'class-validator';
import type { CipherKey } from '../common/crypto/secret-cipher.js';
import { errorMessage } from '../common/errors/error-message.js';
import { HostAllowlist } from '../common/http/host-allowlist.js';
import { parseDestination } from '../common/http/network-destination.js';
import type { AgentConfig } from './agent-config.js';
import { ConfigError } from './config.error.js';
import { parseEncryptionKeys } from './encryption-keys.js';
import type { GitConfig } from './git-config.js';
import type { TelemetryConfig } from './telemetry-config.js';
import {
  ChoiceVariable,
  commaList,
  FromVariable,
  hasNamesBelow,
  IntegerVariable,
  isOrigin,
  ListVariable,
  MatchingVariable,
  PathVariable,
  PortVariable,
  PostgresUrlVariable,
  Satisfies,
  SecondsVariable,
  SwitchVariable,
  TextVariable,
  UrlVariable,
} from './variables.js';

// The configuration in typed groups: each member names its environment variable, its default and its rules. An empty
// variable counts as absent. Documented for operators in docs/operations.md, which a test compares with this file.

const HOST_NAME = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i;

export class HttpConfig {
  @PortVariable('PORT', '3000')
  port: number;

  @TextVariable('HOST', { default: '127.0.0.1' })
  host: string;

  /** How clients reach the service, without a trailing slash; null when not configured. */
  @UrlVariable('PUBLIC_URL')
  publicUrl: string | null;

  @ListVariable(
    'CORS_ORIGINS',
    Satisfies(
      (origins) => Array.isArray(origins) && origins.every(isOrigin),
      'must be a comma list of origins such as https://app.example.com',
    ),
  )
  corsOrigins: string[];

  /** Host names besides its own under which the service answers: `name`, or `*.name` for all below it. */
  @ListVariable(
    'ALLOWED_HOSTS',
    Satisfies(
      (hosts) => Array.isArray(hosts) && hosts.every((host) => HOST_NAME.test(String(host))),
      'must be a comma list of host names without scheme and port, such as slipway.internal or *.example.com',
    ),
  )
  allowedHosts: string[];

  /** Requests per key and minute, per replica; 0: unlimited. */
  @IntegerVariable('RATE_LIMIT_PER_MINUTE', {
    default: '600',
    minimum: 0,
    message: 'must be a whole number, 0 to switch the limit off',
  })
  rateLimitPerMinute: number;

  /** Seconds between saying that this replica is not ready and closing its listener. */
  @IntegerVariable('SHUTDOWN_DELAY_SECONDS', {
    default: '0',
    minimum: 0,
    maximum: 300,
    message: 'must be a whole number of seconds from 0 to 300',
  })
  shutdownDelaySeconds: number;

  /** Absolute path of a built web application that is served at `/`; null: there is none. */
  @PathVariable('WEB_APP_FOLDER')
  webAppFolder: string | null;

  /** Port of the metrics, on the same host; null: no metrics. */
  @PortVariable('METRICS_PORT')
  metricsPort: number | null;
}

export class LogConfig {
  @ChoiceVariable('LOG_LEVEL', ['debug', 'info', 'warn', 'error'], {
    default: 'info',
  })
  level: 'debug' | 'info' | 'warn' | 'error';

  /** Unless configured: pretty on a terminal, else JSON. */
  @ChoiceVariable('LOG_FORMAT', ['json', 'pretty'])
  format: 'json' | 'pretty';

  /** One line per request. */
  @SwitchVariable('LOG_REQUESTS', true)
  requests: boolean;

  /** Greet whoever started the service: at a terminal, and on the embedded database (nobody's production). */
  welcome: boolean;
}

export class DatabaseConfig {
  /** Null: the embedded PostgreSQL in `DATA_DIR`. */
  @PostgresUrlVariable('DATABASE_URL')
  url: string | null;

  /** The same database without a connection pooler in between; null: `url` leads to it directly. */
  @PostgresUrlVariable('DATABASE_DIRECT_URL')
  directUrl: string | null;

  @IntegerVariable('DATABASE_POOL_SIZE', {
    default: '10',
    minimum: 1,
    maximum: 500,
    message: 'must be a whole number from 1 to 500',
  })
  poolSize: number;

  /** Days that audit entries are kept; 0: for ever. */
  @IntegerVariable('AUDIT_RETENTION_DAYS', {
    default: '365',
    minimum: 0,
    maximum: 36_500,
    message: 'must be a whole number of days up to 36500, 0 to keep all entries',
  })
  auditRetentionDays: number;
}

export class TrustConfig {
  @FromVariable(
    'BOOTSTRAP_API_KEY',
    {},
    MinLength(16, { message: 'must have at least 16 characters' }),
    MaxLength(512, { message: 'must have at most 512 characters' }),
    Satisfies(
      (key) => typeof key === 'string' && /^[\x21-\x7e]+$/.test(key),
      'must consist of printable characters without spaces',
    ),
  )
  bootstrapApiKey: string | null;

  /** Null: generated into `DATA_DIR` (embedded database only). */
  @FromVariable('ENCRYPTION_KEYS', { convert: parseEncryptionKeys })
  encryptionKeys: CipherKey[] | null;
}

/** What a container label, a queue's name and a folder can all hold. */
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const LABEL_EXPECTED = 'must be 1 to 63 letters, digits or . _ -, beginning with a letter or digit';

export class SandboxConfig {
  @ChoiceVariable('SANDBOX_BACKEND', ['process', 'docker'], { default: 'process' })
  backend: 'process' | 'docker';

  /** Absolute path of the list of specifications; null: the built-in list. */
  @PathVariable('SANDBOX_SPECS_FILE')
  specsFile: string | null;

  /** Of the process backend. */
  @ChoiceVariable('SANDBOX_ISOLATION', ['auto', 'bwrap', 'none'], {
    default: 'auto',
  })
  isolation: 'auto' | 'bwrap' | 'none';

  /** Whether each process sandbox has a network of its own; `auto`: where that works. */
  @ChoiceVariable('SANDBOX_NETWORK', ['auto', 'isolated', 'shared'], { default: 'auto' })
  network: 'auto' | 'isolated' | 'shared';

  /** Ranges, hosts and ports that are not public and that process sandboxes reach from networks of their own. */
  @ListVariable(
    'SANDBOX_NETWORK_ALLOW',
    Satisfies(
      (entries) =>
        Array.isArray(entries) && entries.every((entry) => parseDestination(String(entry)) !== null),
      'must be a comma list of ranges (10.20.0.0/16), hosts (git.example.com) and ports of this machine (localhost:11434)',
    ),
  )
  networkAllow: string[];

  /** Several users may have process sandboxes that nothing separates. */
  @SwitchVariable('ALLOW_UNSANDBOXED', false)
  allowUnsandboxed: boolean;

  /** Which machine's sandboxes this replica looks after; null: the id kept in `DATA_DIR`. */
  @MatchingVariable('HOST_ID', LABEL, LABEL_EXPECTED)
  hostId: string | null;

  /** Value of the label that marks what this installation made; null: the id kept in the database. */
  @MatchingVariable('INSTANCE_ID', LABEL, LABEL_EXPECTED)
  instanceId: string | null;

  /** How agent servers reach the service, without a trailing slash; null: derived. */
  @UrlVariable('SANDBOX_CALLBACK_URL')
  callbackUrl: string | null;

  /** The network that the service and docker sandboxes share. */
  @MatchingVariable('SANDBOX_DOCKER_NETWORK', /^[A-Za-z0-9][\w.-]*$/, 'must be the name of a Docker network')
  dockerNetwork: string | null;

  /** Host name or IP of this machine at which other hosts reach its sandboxes; null: loopback only. */
  @MatchingVariable(
    'SANDBOX_ADDRESS',
    /^[A-Za-z0-9.:-]+$/,
    'must be a host name or an IP address, without scheme and port',
  )
  address: string | null;

  /**
   * Where clients reach agent servers: at loopback ports that the service holds, at host names below `portsUrl`, below a
   * path of the service, or at the addresses of the sandboxes themselves. Unless configured: `ports` where only this
   * machine reaches the service, else `path`.
   */
  @ChoiceVariable('SANDBOX_EXPOSE', ['ports', 'hosts', 'path', 'direct'], {
    // Its name before there were ports and hosts.
    convert: (text) => (text === 'proxy' ? 'path' : text),
  })
  expose: 'ports' | 'hosts' | 'path' | 'direct';

  /**
   * Scheme and host name (and port) below which the ports of what agents start have host names; null: below `localhost`
   * where `PUBLIC_URL` names this machine, else nowhere.
   */
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

  /** Sandboxes that one user may have running at a time. */
  @IntegerVariable('MAX_RUNNING_SANDBOXES', {
    default: '5',
    minimum: 1,
    maximum: 10_000,
    message: 'must be a whole number from 1 to 10000',
  })
  maxRunning: number;

  /** What happens when one more is requested: the longest idle one is paused, or the request is refused. */
  @ChoiceVariable('SANDBOX_LIMIT_POLICY', ['pause_oldest_idle', 'reject'], { default: 'pause_oldest_idle' })
  limitPolicy: 'pause_oldest_idle' | 'reject';

  /** Seconds without activity after which a sandbox is paused; 0: never. */
  @SecondsVariable('SANDBOX_IDLE_TIMEOUT_SECONDS', '1800', 'never pause')
  idleTimeoutSeconds: number;

  /** Seconds after which a sandbox that does not run is removed; 0: never. */
  @SecondsVariable('SANDBOX_RETENTION_SECONDS', '0', 'keep them')
  retentionSeconds: number;

  /** Seconds that the start of a conversation waits for quota. */
  @SecondsVariable('SANDBOX_WAIT_SECONDS', '600')
  waitSeconds: number;

  /** Age in seconds from which a sandbox of this installation without a row is removed. */
  @SecondsVariable('SANDBOX_ORPHAN_GRACE_SECONDS', '60')
  orphanGraceSeconds: number;

  /** Processes and threads in one sandbox. */
  @IntegerVariable('SANDBOX_PROCESSES', {
    default: '512',
    minimum: 32,
    maximum: 1_000_000,
    message: 'must be a whole number from 32 to 1000000',
  })
  processes: number;

  /** What the files of one process sandbox may take, mebibytes; 0: any amount. */
  @IntegerVariable('SANDBOX_DISK_MB', {
    default: '10240',
    minimum: 0,
    message: 'must be a whole number of megabytes, 0 for no limit',
  })
  diskMb: number;

  /** What sandboxes leave free on their disk, mebibytes. */
  @IntegerVariable('SANDBOX_DISK_RESERVE_MB', {
    default: '512',
    minimum: 0,
    message: 'must be a whole number of megabytes',
  })
  diskReserveMb: number;

  /** Variables of the service itself that programs of process sandboxes need as well: paths, language, proxies, CAs. */
  environment: Readonly<Record<string, string>>;
}

export class OutboundConfig {
  /** Hosts that user-given LLM and MCP addresses may name; null: any. */
  @FromVariable('OUTBOUND_ALLOWLIST', { convert: hostListOf('OUTBOUND_ALLOWLIST') })
  allowlist: string[] | null;

  /** Hosts that webhook endpoints may name; null: as `allowlist`. */
  @FromVariable('WEBHOOK_HOST_ALLOWLIST', { convert: hostListOf('WEBHOOK_HOST_ALLOWLIST') })
  webhookAllowlist: string[] | null;

  @UrlVariable('HTTPS_PROXY')
  proxyUrl: string | null;

  @TextVariable('NO_PROXY')
  noProxy: string | null;
}

/** Members of {@link AppConfig} that belong to no group. */
export class GeneralConfig {
  /** Absolute path. */
  @PathVariable('DATA_DIR', '.data')
  dataDir: string;
}

/** The validated configuration; injected by this class. */
export class AppConfig implements Readonly<GeneralConfig> {
  readonly dataDir: string;
  readonly http: HttpConfig;
  readonly log: LogConfig;
  readonly database: DatabaseConfig;
  readonly trust: TrustConfig;
  readonly git: GitConfig;
  readonly agent: AgentConfig;
  readonly sandboxes: SandboxConfig;
  readonly outbound: OutboundConfig;
  /** Null: nothing is exported. */
  readonly telemetry: TelemetryConfig | null;

  constructor(groups: AppConfig) {
    Object.assign(this, groups);
  }
}

/** Host lists are read where they are used; here only to say at once that one is not readable. */
function hostListOf(variable: string): (text: string) => string[] {
  return (text) => {
    const entries = commaList(text);
    try {
      HostAllowlist.parse(entries);
    } catch (error) {
      throw new ConfigError(`${variable}: ${errorMessage(error)}`, { cause: error });
    }
    return entries;
  };
}
