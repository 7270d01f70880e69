import { MaxLength, MinLength } from 'class-validator';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import type { CipherKey } from '../common/crypto/secret-cipher.js';
import type { AgentConfig } from './agent-config.js';
import { ConfigError } from './config.error.js';
import { parseEncryptionKeys } from './encryption-keys.js';
import type { GitConfig } from './git-config.js';
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
  PortVariable,
  PostgresUrlVariable,
  SecondsVariable,
  Satisfies,
  SwitchVariable,
  TextVariable,
  UrlVariable,
} from './variables.js';

// Each member names its environment variable, default and rules; an empty variable counts as absent. A test compares
// this file with docs/operations.md.

const HOST_NAME = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i;

export class HttpConfig {
  @PortVariable('PORT', '3000')
  port: number;

  @TextVariable('HOST', { default: '127.0.0.1' })
  host: string;

  /** How clients reach the service, without a trailing slash. */
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

  /** `name`, or `*.name` for all below it, besides the service's own names. */
  @ListVariable(
    'ALLOWED_HOSTS',
    Satisfies(
      (hosts) => Array.isArray(hosts) && hosts.every((host) => HOST_NAME.test(String(host))),
      'must be a comma list of host names without scheme and port, such as slipway.internal or *.example.com',
    ),
  )
  allowedHosts: string[];

  /** Per user, or address of unknown callers, and replica; 0: unlimited. */
  @IntegerVariable('RATE_LIMIT_PER_MINUTE', {
    default: '600',
    minimum: 0,
    message: 'must be a whole number, 0 to switch the limit off',
  })
  rateLimitPerMinute: number;

  /** In one process, streams aside; 0: unlimited. */
  @IntegerVariable('MAX_REQUESTS_IN_FLIGHT', {
    default: '1000',
    minimum: 0,
    message: 'must be a whole number, 0 to switch the limit off',
  })
  maxRequestsInFlight: number;

  /** Between saying that this replica is not ready and closing its listener. */
  @IntegerVariable('SHUTDOWN_DELAY_SECONDS', {
    default: '0',
    minimum: 0,
    maximum: 300,
    message: 'must be a whole number of seconds from 0 to 300',
  })
  shutdownDelaySeconds: number;

  @PathVariable('WEB_APP_FOLDER')
  webAppFolder: string | null;

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

  @SwitchVariable('LOG_REQUESTS', true)
  requests: boolean;

  /** Only at a terminal with the embedded database, which is not for production. */
  welcome: boolean;
}

export class DatabaseConfig {
  /** Null: the embedded PostgreSQL in `DATA_DIR`. */
  @PostgresUrlVariable('DATABASE_URL')
  url: string | null;

  /** The same database without a pooler; null: `url` leads to it directly. */
  @PostgresUrlVariable('DATABASE_DIRECT_URL')
  directUrl: string | null;

  @IntegerVariable('DATABASE_POOL_SIZE', {
    default: '10',
    minimum: 1,
    maximum: 500,
    message: 'must be a whole number from 1 to 500',
  })
  poolSize: number;

  /** 0: for ever. */
  @IntegerVariable('AUDIT_RETENTION_DAYS', {
    default: '365',
    minimum: 0,
    maximum: 36_500,
    message: 'must be a whole number of days up to 36500, 0 to keep all entries',
  })
  auditRetentionDays: number;

  /** At least these days; 0: for ever. */
  @IntegerVariable('EVENT_RETENTION_DAYS', {
    default: '0',
    minimum: 0,
    maximum: 36_500,
    message: 'must be a whole number of days up to 36500, 0 to keep all events',
  })
  eventRetentionDays: number;

  @SecondsVariable('AUTOMATION_RUN_RETENTION_SECONDS', '7776000')
  automationRunRetentionSeconds: number;
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

export class OutboundConfig {
  /** Hosts that user-given LLM and MCP addresses may name; null: any. */
  @FromVariable('OUTBOUND_ALLOWLIST', { convert: hostListOf('OUTBOUND_ALLOWLIST') })
  allowlist: string[] | null;

  /** Null: as `allowlist`. */
  @FromVariable('WEBHOOK_HOST_ALLOWLIST', { convert: hostListOf('WEBHOOK_HOST_ALLOWLIST') })
  webhookAllowlist: string[] | null;

  @UrlVariable('HTTPS_PROXY')
  proxyUrl: string | null;

  @TextVariable('NO_PROXY')
  noProxy: string | null;
}

export class GeneralConfig {
  @PathVariable('DATA_DIR', '.data')
  dataDir: string;
}

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
  readonly telemetry: TelemetryConfig | null;

  constructor(groups: AppConfig) {
    Object.assign(this, groups);
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
