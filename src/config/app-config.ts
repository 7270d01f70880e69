import { isIP } from 'node:net';
import { MaxLength, MinLength } from 'class-validator';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import type { CipherKey } from '@slipway/common/secret-cipher.js';
import type { AgentConfig } from './agent-config.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { parseEncryptionKeys } from './encryption-keys.js';
import type { EgressConfig } from './egress-config.js';
import type { GitConfig } from './git-config.js';
import type { OidcConfig } from './oidc-config.js';
import type { SandboxConfig } from './sandbox-config.js';
import type { TelemetryConfig } from './telemetry-config.js';
import {
  ChoiceVariable,
  commaList,
  FromVariable,
  IntegerVariable,
  isOrigin,
  ListVariable,
  PathVariable,
  PlainUrlVariable,
  PortVariable,
  PostgresUrlVariable,
  Satisfies,
  SecondsVariable,
  SwitchVariable,
  TextVariable,
  UrlVariable,
} from '@slipway/configuration/variables.js';

// Each member names its environment variable, default and rules; an empty variable counts as absent.
// `npm run docs:configuration` writes docs/configuration.md from these.

const HOST_NAME = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i;

/** A network has one bit at least: all addresses would be no proxies. */
function areProxies(given: unknown): boolean {
  return Array.isArray(given)
    ? given.every((entry) => {
        const [, address = '', bits = '1'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(entry)) ?? [];
        return isIP(address) > 0 && Number(bits) >= 1 && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
      })
    : Number(given) <= 10;
}

export class HttpConfig {
  @PortVariable('PORT', 'Port of the listener; 0 takes any free one.', '3000')
  port: number;

  @TextVariable('HOST', 'Address of the listener. The image listens on `0.0.0.0`.', { default: '127.0.0.1' })
  host: string;

  @PlainUrlVariable(
    'PUBLIC_URL',
    'How clients reach the service, with a path where a proxy serves it below one. By default `http://localhost:PORT`.',
  )
  publicUrl: string | null;

  @ListVariable(
    'CORS_ORIGINS',
    'Origins of browser clients.',
    Satisfies(
      (origins) => Array.isArray(origins) && origins.every(isOrigin),
      'must be a comma list of origins such as https://app.example.com',
    ),
  )
  corsOrigins: string[];

  @ListVariable(
    'ALLOWED_HOSTS',
    'Host names besides its own under which the service answers: `name`, or `*.name` for all below it.',
    Satisfies(
      (hosts) => Array.isArray(hosts) && hosts.every((host) => HOST_NAME.test(String(host))),
      'must be a comma list of host names without scheme and port, such as slipway.internal or *.example.com',
    ),
  )
  allowedHosts: string[];

  @FromVariable(
    'TRUSTED_PROXIES',
    'Reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count: how many stand in front of the service, if nobody reaches it past them, or their addresses and networks. By default none.',
    { absent: [], isPlain: true, convert: (text) => (/^\d+$/.test(text) ? Number(text) : commaList(text)) },
    Satisfies(
      areProxies,
      'must be a number of proxies up to 10, or a comma list of addresses and networks such as 10.0.0.7,fd00::/64',
    ),
  )
  trustedProxies: number | string[];

  @IntegerVariable(
    'RATE_LIMIT_PER_MINUTE',
    'Requests of one user, and of callers without a key at one address, on one replica.',
    { default: '600', minimum: 0, zero: 'to switch the limit off' },
  )
  rateLimitPerMinute: number;

  @IntegerVariable('MAX_REQUESTS_IN_FLIGHT', 'Requests that one replica works on at once, streams aside.', {
    default: '1000',
    minimum: 0,
    zero: 'to switch the limit off',
  })
  maxRequestsInFlight: number;

  @IntegerVariable(
    'SHUTDOWN_DELAY_SECONDS',
    'How long a stopping replica keeps serving requests after it has become not ready.',
    { default: '0', minimum: 0, maximum: 300, unit: 'seconds' },
  )
  shutdownDelaySeconds: number;

  @PathVariable('WEB_APP_FOLDER', 'Folder of a built web application to serve at `/`; `npm run web` sets it.')
  webAppFolder: string | null;

  @PortVariable(
    'METRICS_PORT',
    'Port of Prometheus metrics on `METRICS_HOST`, without a key. By default there are none.',
  )
  metricsPort: number | null;

  @TextVariable(
    'METRICS_HOST',
    'Address of the metrics, or a name of one. By default `HOST`, and loopback with containers as sandboxes, which reach `HOST`.',
  )
  metricsHost: string;
}

export class LogConfig {
  @ChoiceVariable('LOG_LEVEL', 'The least important lines to write.', ['debug', 'info', 'warn', 'error'], {
    default: 'info',
  })
  level: 'debug' | 'info' | 'warn' | 'error';

  @ChoiceVariable(
    'LOG_FORMAT',
    'Lines for programs or for people. By default `pretty` on a terminal, else `json`.',
    ['json', 'pretty'],
  )
  format: 'json' | 'pretty';

  @SwitchVariable('LOG_REQUESTS', 'Whether each request is a line of the log.', true)
  requests: boolean;

  /** Only at a terminal with the embedded database, which is not for production. */
  welcome: boolean;
}

const BYTES = { minimum: 0, unit: 'bytes', zero: 'to switch the limit off' } as const;

export class DatabaseConfig {
  @PostgresUrlVariable(
    'DATABASE_URL',
    'PostgreSQL 15 to 18, with `?sslmode=verify-full&sslrootcert=/path/ca.pem` for TLS. By default an embedded one in `DATA_DIR`.',
  )
  url: string | null;

  @PostgresUrlVariable(
    'DATABASE_DIRECT_URL',
    'The same database without the pooler that `DATABASE_URL` leads to.',
  )
  directUrl: string | null;

  @IntegerVariable(
    'DATABASE_POOL_SIZE',
    'Connections of one replica; the job queue and notifications take 3 more.',
    { default: '10', minimum: 1, maximum: 500 },
  )
  poolSize: number;

  @IntegerVariable('AUDIT_RETENTION_DAYS', 'How long audit entries are kept.', {
    default: '365',
    minimum: 0,
    maximum: 36_500,
    unit: 'days',
    zero: 'to keep all entries',
  })
  auditRetentionDays: number;

  @IntegerVariable(
    'EVENT_RETENTION_DAYS',
    'How long events of conversations are kept at least; they go by whole months.',
    { default: '0', minimum: 0, maximum: 36_500, unit: 'days', zero: 'to keep all events' },
  )
  eventRetentionDays: number;

  @SecondsVariable(
    'AUTOMATION_RUN_RETENTION_SECONDS',
    'Runs of automations are removed this long after their end.',
    '7776000',
  )
  automationRunRetentionSeconds: number;

  @SecondsVariable(
    'REMOVED_USER_RETENTION_SECONDS',
    'Conversations and paused sandboxes of a removed user are kept so long, unless they were handed over.',
    '86400',
    'keep nothing',
  )
  removedUserRetentionSeconds: number;

  @IntegerVariable(
    'AUTOMATION_EVENT_BYTES',
    'What is kept of the events that start automations, for each organization; the oldest go first.',
    { ...BYTES, default: '100000000' },
  )
  automationEventBytes: number;

  @IntegerVariable(
    'CONVERSATION_EVENT_BYTES',
    'Events of one conversation; beyond that it takes no messages, and what its agent does is not stored.',
    { ...BYTES, default: '200000000' },
  )
  conversationEventBytes: number;

  @IntegerVariable(
    'USER_EVENT_BYTES',
    "Events of a user's conversations together; beyond that none takes messages or begins.",
    { ...BYTES, default: '2000000000' },
  )
  userEventBytes: number;
}

export class TrustConfig {
  @FromVariable(
    'BOOTSTRAP_API_KEY',
    "The administrator's key named `bootstrap`. Changing it revokes the old one.",
    { isSecret: true },
    MinLength(16, { message: 'must have at least 16 characters' }),
    MaxLength(512, { message: 'must have at most 512 characters' }),
    Satisfies(
      (key) => typeof key === 'string' && /^[\x21-\x7e]+$/.test(key),
      'must consist of printable characters without spaces',
    ),
  )
  bootstrapApiKey: string | null;

  @FromVariable(
    'ENCRYPTION_KEYS',
    'Keys of stored secrets, of which the first encrypts, all decrypt; the same on every replica. Required with `DATABASE_URL`, otherwise generated.',
    { form: 'a comma list of id:base64-of-32-bytes', convert: parseEncryptionKeys, isSecret: true },
  )
  encryptionKeys: CipherKey[] | null;

  @IntegerVariable('DEVICE_KEY_DAYS', 'How long a key lasts that `openhands login` and the like get.', {
    default: '90',
    minimum: 0,
    maximum: 36_500,
    unit: 'days',
    zero: 'for keys that last until they are revoked',
  })
  deviceKeyDays: number;
}

export class OutboundConfig {
  @FromVariable(
    'OUTBOUND_ALLOWLIST',
    'Hosts that addresses of language models and tool servers may name: names, `*.suffix` or origins. By default any.',
    { form: 'a comma list', convert: hostListOf('OUTBOUND_ALLOWLIST') },
  )
  allowlist: string[] | null;

  @FromVariable(
    'WEBHOOK_HOST_ALLOWLIST',
    'The same for the webhook endpoints of users. By default `OUTBOUND_ALLOWLIST`, else public https servers.',
    { form: 'a comma list', convert: hostListOf('WEBHOOK_HOST_ALLOWLIST') },
  )
  webhookAllowlist: string[] | null;

  @ProxyVariable('HTTPS_PROXY', 'Proxy of https requests of the service, and of programs in sandboxes.')
  proxyUrl: string | null;

  @ProxyVariable('HTTP_PROXY', 'Proxy of http requests of programs in sandboxes.')
  sandboxProxyUrl: string | null;

  @TextVariable(
    'NO_PROXY',
    'Hosts that are reached without a proxy: names with all below them, `.suffix`, addresses, ranges such as `10.0.0.0/8`.',
  )
  noProxy: string | null;
}

/** The proxy for the service's own requests; null when there is none. */
export function proxyOf({ proxyUrl, noProxy }: OutboundConfig): { url: string; noProxy: string } | null {
  return proxyUrl === null ? null : { url: proxyUrl, noProxy: noProxy ?? '' };
}

export class GeneralConfig {
  @PathVariable(
    'DATA_DIR',
    'Folder of the embedded database and the keys generated with it, of process sandboxes, and of the host id.',
    '.data',
  )
  dataDir: string;
}

export class AppConfig implements Readonly<GeneralConfig> {
  readonly dataDir: string;
  readonly http: HttpConfig;
  readonly log: LogConfig;
  readonly database: DatabaseConfig;
  readonly trust: TrustConfig;
  readonly oidc: OidcConfig | null;
  readonly git: GitConfig;
  readonly agent: AgentConfig;
  readonly sandboxes: SandboxConfig;
  readonly egress: EgressConfig;
  readonly outbound: OutboundConfig;
  readonly telemetry: TelemetryConfig | null;

  constructor(groups: AppConfig) {
    Object.assign(this, groups);
  }
}

function ProxyVariable(name: string, description: string): PropertyDecorator {
  const message = 'must be an http(s) address, with special characters of its password percent-encoded';
  return UrlVariable(name, description, { isSecret: true, message }, Satisfies(isDecodable, message));
}

/** Node.js ends where user or password are not. */
function isDecodable(address: unknown): boolean {
  try {
    decodeURIComponent(String(address));
    return true;
  } catch {
    return false;
  }
}

/** Host lists are parsed where they are used; here only to report a mistake at the start. */
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
