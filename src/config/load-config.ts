import { existsSync } from 'node:fs';
import path from 'node:path';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { errorMessage } from '../common/errors/error-message.js';
import { HostAllowlist } from '../common/http/host-allowlist.js';
import { AppConfig, type EnterpriseSsoConfig, type SandboxConfig } from './app-config.js';
import { ConfigError } from './config.error.js';
import { parseEncryptionKeys } from './encryption-keys.js';
import { Environment } from './environment.js';

/**
 * Where repositories of tokens without a host are cloned from. Where the operator moved the API and said nothing about
 * clones, it is the API's own host: a token is never offered to another server than the one it was checked with.
 */
export function cloneUrl(
  given: string | undefined,
  apiUrl: string,
  defaults: { api: string; clone: string },
): string {
  if (given !== undefined) {
    return given;
  }
  if (new URL(apiUrl).origin === new URL(defaults.api).origin) {
    return defaults.clone;
  }
  const { protocol, host } = new URL(apiUrl);
  // GitHub with data residency has its API at a name of its own below the host of its repositories.
  return `${protocol}//${host.replace(/^api\./, '')}`;
}

/** What a program needs of its surroundings; nothing that is the service's own. */
const INHERITED =
  /^(PATH|TZ|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY)$/i;

/**
 * Turns environment variables into the typed configuration.
 *
 * @param terminal whether standard output is a terminal (chooses the log format)
 * @throws ConfigError one line that names the variable and what would be right
 */
export function parseConfig(variables: NodeJS.ProcessEnv, terminal: boolean): AppConfig {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const env = plainToInstance(Environment, given);
  const [error] = validateSync(env, { whitelist: true, validationError: { target: false, value: false } });
  if (error) {
    throw new ConfigError(
      `${error.property}: ${Object.values(error.constraints ?? {})[0] ?? 'is not valid'}`,
    );
  }
  if (env.DATABASE_URL !== undefined && env.ENCRYPTION_KEYS === undefined) {
    throw new ConfigError(
      'ENCRYPTION_KEYS: is required with DATABASE_URL; make one with: echo "k1:$(openssl rand -base64 32)"',
    );
  }
  return new AppConfig({
    http: {
      port: env.PORT,
      host: env.HOST,
      publicUrl: env.PUBLIC_URL === undefined ? null : withoutTrailingSlash(env.PUBLIC_URL),
      corsOrigins: parseOrigins(env.CORS_ORIGINS),
      rateLimitPerMinute: env.RATE_LIMIT_PER_MINUTE,
      metricsPort: env.METRICS_PORT ?? null,
    },
    log: {
      level: env.LOG_LEVEL,
      format: env.LOG_FORMAT ?? (terminal ? 'pretty' : 'json'),
      requests: env.LOG_REQUESTS,
      welcome: env.LOG_FORMAT !== 'json' && (terminal || env.DATABASE_URL === undefined),
    },
    database: { url: env.DATABASE_URL ?? null, poolSize: env.DATABASE_POOL_SIZE },
    dataDir: path.resolve(env.DATA_DIR),
    trust: {
      bootstrapApiKey: env.BOOTSTRAP_API_KEY ?? null,
      encryptionKeys: env.ENCRYPTION_KEYS === undefined ? null : parseEncryptionKeys(env.ENCRYPTION_KEYS),
    },
    git: {
      hostAllowlist: list(env.GIT_HOST_ALLOWLIST),
      githubApiUrl: withoutTrailingSlash(env.GITHUB_API_URL),
      gitlabApiUrl: withoutTrailingSlash(env.GITLAB_API_URL),
      bitbucketApiUrl: withoutTrailingSlash(env.BITBUCKET_API_URL),
      githubCloneUrl: withoutTrailingSlash(
        cloneUrl(env.GITHUB_CLONE_URL, env.GITHUB_API_URL, {
          api: 'https://api.github.com',
          clone: 'https://github.com',
        }),
      ),
      gitlabCloneUrl: withoutTrailingSlash(
        cloneUrl(env.GITLAB_CLONE_URL, env.GITLAB_API_URL, {
          api: 'https://gitlab.com/api',
          clone: 'https://gitlab.com',
        }),
      ),
      bitbucketCloneUrl: withoutTrailingSlash(
        cloneUrl(env.BITBUCKET_CLONE_URL, env.BITBUCKET_API_URL, {
          api: 'https://api.bitbucket.org/2.0',
          clone: 'https://bitbucket.org',
        }),
      ),
      enterpriseSso: enterpriseSso(env),
      requestTimeoutMs: Math.round(env.GIT_REQUEST_TIMEOUT_SECONDS * 1000),
      tasksTimeoutMs: Math.round(env.SUGGESTED_TASKS_TIMEOUT_SECONDS * 1000),
    },
    agent: {
      exposeGitTokens: env.AGENT_EXPOSE_GIT_TOKENS,
      llmTimeoutSeconds: env.LLM_TIMEOUT_SECONDS,
      condenserTokens: env.AGENT_CONDENSER_TOKENS ?? null,
      modelPricesFile: absolute(env.MODEL_PRICES_FILE),
      tavilyApiUrl: withoutTrailingSlash(env.TAVILY_API_URL),
    },
    sandboxes: { ...sandboxes(env), environment: inherited(given) },
    outbound: {
      allowlist:
        env.OUTBOUND_ALLOWLIST === undefined
          ? null
          : parseHosts('OUTBOUND_ALLOWLIST', list(env.OUTBOUND_ALLOWLIST)),
      proxyUrl: env.HTTPS_PROXY ?? null,
      noProxy: env.NO_PROXY ?? null,
    },
  });
}

/** Reads `.env` in the working directory (real variables win) and the environment. */
export function loadConfig(): AppConfig {
  if (existsSync('.env')) {
    process.loadEnvFile('.env');
  }
  const { env } = process;
  return parseConfig(
    {
      ...env,
      HTTPS_PROXY: env['HTTPS_PROXY'] ?? env['https_proxy'],
      NO_PROXY: env['NO_PROXY'] ?? env['no_proxy'],
    },
    process.stdout.isTTY,
  );
}

function enterpriseSso(env: Environment): EnterpriseSsoConfig | null {
  if (
    env.ENTERPRISE_SSO_ISSUER === undefined ||
    env.ENTERPRISE_SSO_ALIAS === undefined ||
    env.ENTERPRISE_SSO_KIND === undefined
  ) {
    return null;
  }
  if (env.ENTERPRISE_SSO_KIND === 'bitbucket_dc' && env.ENTERPRISE_SSO_HOST === undefined) {
    throw new ConfigError('ENTERPRISE_SSO_HOST: is required when ENTERPRISE_SSO_KIND is bitbucket_dc');
  }
  if (
    env.ENTERPRISE_SSO_API_VERSION === 'v2' &&
    (env.ENTERPRISE_SSO_CLIENT_ID === undefined || env.ENTERPRISE_SSO_CLIENT_SECRET === undefined)
  ) {
    throw new ConfigError(
      'ENTERPRISE_SSO_CLIENT_ID: and ENTERPRISE_SSO_CLIENT_SECRET are required when ENTERPRISE_SSO_API_VERSION is v2',
    );
  }
  return {
    issuer: withoutTrailingSlash(env.ENTERPRISE_SSO_ISSUER),
    alias: env.ENTERPRISE_SSO_ALIAS,
    kind: env.ENTERPRISE_SSO_KIND,
    host: env.ENTERPRISE_SSO_HOST ?? null,
    clientId: env.ENTERPRISE_SSO_CLIENT_ID ?? null,
    clientSecret: env.ENTERPRISE_SSO_CLIENT_SECRET ?? null,
    apiVersion: env.ENTERPRISE_SSO_API_VERSION,
  };
}

function sandboxes(env: Environment): Omit<SandboxConfig, 'environment'> {
  if (env.SANDBOX_BACKEND === 'kubernetes') {
    throw new ConfigError('SANDBOX_BACKEND: kubernetes is not built yet; use process or docker');
  }
  return {
    backend: env.SANDBOX_BACKEND,
    specsFile: absolute(env.SANDBOX_SPECS_FILE),
    isolation: env.SANDBOX_ISOLATION,
    allowUnsandboxed: env.ALLOW_UNSANDBOXED,
    hostId: env.HOST_ID ?? null,
    instanceId: env.INSTANCE_ID ?? null,
    callbackUrl:
      env.SANDBOX_CALLBACK_URL === undefined ? null : withoutTrailingSlash(env.SANDBOX_CALLBACK_URL),
    dockerNetwork: env.SANDBOX_DOCKER_NETWORK ?? null,
    address: env.SANDBOX_ADDRESS ?? null,
    expose: env.SANDBOX_EXPOSE,
    portsUrl:
      env.SANDBOX_PORTS_URL === undefined ? null : hostsBelow('SANDBOX_PORTS_URL', env.SANDBOX_PORTS_URL),
    dockerHost: env.DOCKER_HOST ?? null,
    maxRunning: env.MAX_RUNNING_SANDBOXES,
    limitPolicy: env.SANDBOX_LIMIT_POLICY,
    idleTimeoutSeconds: env.SANDBOX_IDLE_TIMEOUT_SECONDS,
    retentionSeconds: env.SANDBOX_RETENTION_SECONDS,
    waitSeconds: env.SANDBOX_WAIT_SECONDS,
    orphanGraceSeconds: env.SANDBOX_ORPHAN_GRACE_SECONDS,
  };
}

function inherited(variables: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      value !== undefined && INHERITED.test(name) ? [[name, value] as const] : [],
    ),
  );
}

/** An address below which there can be other host names, which is so of no IP address. */
function hostsBelow(variable: string, address: string): string {
  const { protocol, host } = new URL(address);
  if (!URL.canParse(`${protocol}//below.${host}`)) {
    throw new ConfigError(`${variable}: must have a host name that others can be below, and no IP address`);
  }
  return withoutTrailingSlash(address);
}

function absolute(file: string | undefined): string | null {
  return file === undefined ? null : path.resolve(file);
}

function list(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** Host lists are read where they are used; here only to say at once that one is not readable. */
function parseHosts(variable: string, entries: string[]): string[] {
  try {
    HostAllowlist.parse(entries);
  } catch (error) {
    throw new ConfigError(`${variable}: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  return entries;
}

function parseOrigins(text: string | undefined): string[] {
  return list(text).map((entry) => {
    if (!URL.canParse(entry) || new URL(entry).origin !== entry) {
      throw new ConfigError('CORS_ORIGINS: must be a comma list of origins such as https://app.example.com');
    }
    return entry;
  });
}

function withoutTrailingSlash(address: string): string {
  return address.replace(/\/+$/, '');
}
