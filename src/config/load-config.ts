import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { PUBLIC_GIT_SERVERS, type PublicGitServer } from '@slipway/git-providers/public-git-servers.js';
import { AgentConfig } from './agent-config.js';
import {
  AppConfig,
  DatabaseConfig,
  GeneralConfig,
  HttpConfig,
  LogConfig,
  OutboundConfig,
  TrustConfig,
} from './app-config.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { EnterpriseSsoConfig, GIT_SERVER_GROUPS, GitConfig } from './git-config.js';
import { GithubAppConfig, standInGroups } from './github-app-config.js';
import { OidcConfig } from './oidc-config.js';
import { EgressConfig } from './egress-config.js';
import { SandboxConfig } from './sandbox-config.js';
import { readTelemetry, TelemetryConfig } from './telemetry-config.js';
import { misspeltVariables } from '@slipway/configuration/misspelt-variables.js';
import { problemsOf, readGroup, type Variable, variablesOf } from '@slipway/configuration/variables.js';

type Variables = Readonly<Record<string, string>>;

/**
 * What paths of the service begin with. With such a path before them, the service could not tell whether a proxy has taken it off.
 */
const OWN_PATHS =
  /^\/(?:\.well-known|alive|api|auth|console|docs|health|mcp|oauth|openapi\.json|ready|server_info|sockets)(?:\/|$)/;

/** Groups of variables under their headings in the configuration reference. */
const GROUPS: Readonly<Record<string, readonly (new () => object)[]>> = {
  'The service': [GeneralConfig, HttpConfig],
  'The log': [LogConfig],
  'The database': [DatabaseConfig],
  Keys: [TrustConfig],
  'Sign-in by OpenID Connect': [OidcConfig],
  'Git hosts': [GitConfig, ...GIT_SERVER_GROUPS.values(), GithubAppConfig],
  'Git tokens from Keycloak': [EnterpriseSsoConfig],
  Agents: [AgentConfig],
  Sandboxes: [SandboxConfig, EgressConfig],
  'Other servers': [OutboundConfig],
  OpenTelemetry: [TelemetryConfig],
};

export function configVariableGroups(): { title: string; variables: Variable[] }[] {
  return Object.entries(GROUPS).map(([title, groups]) => ({ title, variables: groups.flatMap(variablesOf) }));
}

/** Files of deployments and the documents are compared with these. */
export function configVariables(): Variable[] {
  return configVariableGroups().flatMap(({ variables }) => variables);
}

/** What is set, by the names of the variables; values that could be secrets are `(set)`. */
export function configurationReport(environment: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(
    configVariables().flatMap(({ name, isPlain }) => {
      const [value, file] = [environment[name], environment[`${name}_FILE`]];
      return [
        ...(value ? [[name, isPlain ? value : '(set)']] : []),
        ...(file ? [[`${name}_FILE`, '(set)']] : []),
      ];
    }),
  );
}

/** Variables that are set and that nothing reads, a line for each. */
export function unreadVariables(environment: NodeJS.ProcessEnv = process.env): string[] {
  const known = configVariables().flatMap(({ name, isSecret }) => [
    name,
    ...(isSecret ? [`${name}_FILE`] : []),
  ]);
  return misspeltVariables(environment, known, 'docs/configuration.md');
}

/** Reads the environment and, where it has no value, `.env` in the working directory. */
export function loadConfig(): AppConfig {
  if (existsSync('.env')) {
    try {
      process.loadEnvFile('.env');
    } catch (error) {
      throw new ConfigError(`.env: cannot be read: ${errorMessage(error)}`, { cause: error });
    }
  }
  const { env } = process;
  return parseConfig(env, process.stdout.isTTY);
}

/** Has the rules that concern several variables. @throws ConfigError one line for each wrong variable */
export function parseConfig(environment: NodeJS.ProcessEnv, terminal: boolean): AppConfig {
  const variables = withProxies(
    withSecretFiles(
      Object.fromEntries(
        Object.entries(environment).flatMap(([name, value]) => (value ? [[name, value] as const] : [])),
      ),
      configVariables().flatMap(({ name, isSecret }) => (isSecret ? [name] : [])),
    ),
  );
  // Reports all of them at once, so an operator can fix them in one go.
  const problems = Object.values(GROUPS)
    .flat()
    .flatMap((group) => problemsOf(group, variables));
  if (problems.length > 0) {
    throw new ConfigError(problems.join('\n'));
  }
  const database = readGroup(DatabaseConfig, variables);
  const trust = readGroup(TrustConfig, variables);
  if (database.url !== null && trust.encryptionKeys === null) {
    throw new ConfigError(
      'ENCRYPTION_KEYS: is required with DATABASE_URL; make one with: echo "k1:$(openssl rand -base64 32)"',
    );
  }
  if (database.directUrl !== null && database.url === null) {
    throw new ConfigError(
      'DATABASE_DIRECT_URL: needs DATABASE_URL, the address that it is the direct one of',
    );
  }
  const http = readHttp(variables);
  const sandboxes = readSandboxes(variables, http);
  const { dataDir } = readGroup(GeneralConfig, variables);
  const egress = readEgress(variables, sandboxes, dataDir);
  const metricsHost = http.metricsHost as string | null;
  http.metricsHost = metricsHost ?? (sandboxes.backend === 'docker' ? '127.0.0.1' : http.host);
  return new AppConfig({
    dataDir,
    http,
    log: readLog(variables, terminal, database),
    database,
    trust,
    oidc: readOidc(variables),
    git: readGit(variables),
    agent: readAgent(variables),
    sandboxes,
    egress,
    outbound: readGroup(OutboundConfig, variables),
    telemetry: readTelemetry(variables),
  });
}

function readEgress(
  variables: Variables,
  { backend, isolation, network }: SandboxConfig,
  dataDir: string,
): EgressConfig {
  const egress = readGroup(EgressConfig, variables);
  const port = egress.port as number | null;
  egress.port = port ?? (backend === 'process' ? portOf(dataDir) : EGRESS_PORT);
  const isShared = backend === 'process' && (isolation === 'none' || network === 'shared');
  if (egress.credentials === 'outside' && isShared) {
    throw new ConfigError(
      'SANDBOX_CREDENTIALS: outside needs process sandboxes with a network of their own, containers or pods; take it away, or SANDBOX_ISOLATION=none and SANDBOX_NETWORK=shared',
    );
  }
  if (egress.credentials === 'outside' && backend === 'kubernetes' && egress.proxyKeys === null) {
    throw new ConfigError(
      'EGRESS_PROXY_KEY: is required with SANDBOX_CREDENTIALS=outside for pods; the egress proxy of deploy/kubernetes/components/egress-proxy has the same one',
    );
  }
  return egress;
}

/** Of a network of its own. */
const EGRESS_PORT = 3180;
/** Below those that Linux gives out by itself. */
const OWN_PORTS = { first: 20_000, count: 12_768 };

/** Two installations of a machine have two, and replicas that share sandboxes one. */
function portOf(dataDir: string): number {
  const { first, count } = OWN_PORTS;
  return first + (createHash('sha256').update(path.resolve(dataDir)).digest().readUInt32BE() % count);
}

/** Upper case only; `proxy:3128` is http, as to curl, where Node.js in a sandbox would end with an error. */
function withProxies(variables: Variables): Variables {
  const given = (name: string): string[] =>
    [variables[name], variables[name.toLowerCase()]].filter((value) => value !== undefined);
  const proxies = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'].flatMap((name) =>
    given(name)
      .slice(0, 1)
      .map((value) => [name, value.includes('://') ? value : `http://${value}`]),
  );
  const exempt = given('NO_PROXY').join(',');
  return { ...variables, ...Object.fromEntries(proxies), ...(exempt && { NO_PROXY: exempt }) };
}

function readLog(variables: Variables, terminal: boolean, database: DatabaseConfig): LogConfig {
  const log = readGroup(LogConfig, variables);
  const configured = log.format as LogConfig['format'] | null;
  log.format = configured ?? (terminal ? 'pretty' : 'json');
  log.welcome = configured !== 'json' && (terminal || database.url === null);
  return log;
}

function readHttp(variables: Variables): HttpConfig {
  const http = readGroup(HttpConfig, variables);
  const { pathname } = new URL(http.publicUrl ?? 'http://localhost');
  if (!/^(?:\/|(?:\/[\w.~-]+)+)$/.test(pathname) || OWN_PATHS.test(pathname)) {
    throw new ConfigError(
      `PUBLIC_URL: ${pathname} must be a path of letters, digits and . _ ~ -, and none of the service's own, such as /slipway`,
    );
  }
  if (pathname !== '/' && http.webAppFolder !== null) {
    throw new ConfigError(
      'WEB_APP_FOLDER: the application works only at the root of its origin, PUBLIC_URL has a path',
    );
  }
  return http;
}

function readAgent(variables: Variables): AgentConfig {
  const agent = readGroup(AgentConfig, variables);
  if (agent.defaultLlmApiKey !== null && agent.defaultLlmModel === null && agent.defaultLlmBaseUrl === null) {
    throw new ConfigError(
      'DEFAULT_LLM_API_KEY: needs DEFAULT_LLM_MODEL or DEFAULT_LLM_BASE_URL, which say whose key it is',
    );
  }
  return agent;
}

function readGit(variables: Variables): GitConfig {
  const git = readGroup(GitConfig, variables);
  git.servers = Object.fromEntries(
    [...GIT_SERVER_GROUPS].map(([name, group]) => {
      const server = readGroup(group, variables);
      const cloneUrl = cloneUrlOf(server.cloneUrl, server.apiUrl, PUBLIC_GIT_SERVERS[name]);
      return [name, { ...server, cloneUrl }];
    }),
  ) as GitConfig['servers'];
  git.enterpriseSso = readEnterpriseSso(variables);
  git.githubApp = readGithubApp(variables);
  return git;
}

function readGithubApp(variables: Variables): GithubAppConfig | null {
  const app = readGroup(GithubAppConfig, variables);
  if ((app.id as string | null) === null) {
    const other = variablesOf(GithubAppConfig).find(({ name }) => variables[name]);
    if (other !== undefined) {
      throw new ConfigError(`GITHUB_APP_ID: is required when ${other.name} is set`);
    }
    return null;
  }
  if (standInGroups(app).length > 0 && variables['OIDC_ISSUER'] === undefined) {
    throw new ConfigError('GITHUB_APP_FOR: groups need OIDC_ISSUER, which says who is in them');
  }
  return app;
}

/** If only the API was moved, clones come from its host: tokens go only to the server that they were checked with. */
export function cloneUrlOf(configured: string | null, apiUrl: string, service: PublicGitServer): string {
  if (configured !== null) {
    return configured;
  }
  const { origin, protocol, host, pathname } = new URL(apiUrl);
  if (origin === new URL(service.apiUrl).origin) {
    return `https://${service.host}`;
  }
  // GitLab below a relative root has its API there too.
  const [, root = ''] = /^(.*)\/api(?:\/|$)/.exec(pathname) ?? [];
  // GitHub with data residency has its API at a name of its own below the host of its repositories.
  return `${protocol}//${host.replace(/^api\./, '')}${root}`;
}

function readEnterpriseSso(variables: Variables): EnterpriseSsoConfig | null {
  const sso = readGroup(EnterpriseSsoConfig, variables);
  if ((sso.issuer as string | null) === null) {
    const other = variablesOf(EnterpriseSsoConfig).find(({ name }) => variables[name]);
    if (other !== undefined) {
      throw new ConfigError(`ENTERPRISE_SSO_ISSUER: is required when ${other.name} is set`);
    }
    return null;
  }
  if (!Object.hasOwn(PUBLIC_GIT_SERVERS, sso.kind) && sso.host === null) {
    throw new ConfigError(`ENTERPRISE_SSO_HOST: is required when ENTERPRISE_SSO_KIND is ${sso.kind}`);
  }
  if (sso.apiVersion === 'v2' && (sso.clientId === null || sso.clientSecret === null)) {
    throw new ConfigError(
      'ENTERPRISE_SSO_CLIENT_ID: and ENTERPRISE_SSO_CLIENT_SECRET are required when ENTERPRISE_SSO_API_VERSION is v2',
    );
  }
  return sso;
}

function readOidc(variables: Variables): OidcConfig | null {
  const oidc = readGroup(OidcConfig, variables);
  if (oidc.issuer === null) {
    const other = variablesOf(OidcConfig).find(({ name }) => variables[name]);
    if (other !== undefined) {
      throw new ConfigError(`OIDC_ISSUER: is required when ${other.name} is set`);
    }
    return null;
  }
  if (oidc.clientId === null && oidc.audiences.length === 0) {
    throw new ConfigError(
      'OIDC_CLIENT_ID: is required with OIDC_ISSUER for people who sign in, or OIDC_AUDIENCE for callers with its tokens',
    );
  }
  return oidc;
}

function readSandboxes(variables: Variables, http: HttpConfig): SandboxConfig {
  const sandboxes = readGroup(SandboxConfig, variables);
  sandboxes.environment = inherited(variables);
  const configured = sandboxes.expose as SandboxConfig['expose'] | null;
  const isLocal = isLocalUrl(http.publicUrl ?? 'http://localhost');
  sandboxes.expose = configured ?? (isLocal && isLoopbackHost(http.host) ? 'ports' : 'path');
  if (sandboxes.expose === 'hosts' && sandboxes.portsUrl === null && !isLocal) {
    throw new ConfigError(
      'SANDBOX_EXPOSE: hosts needs SANDBOX_PORTS_URL, below which each sandbox gets a host name; or use path',
    );
  }
  return sandboxes;
}

function isLocalUrl(address: string): boolean {
  return isLoopbackHost(new URL(address).hostname);
}

/** Variables that any program needs; none belongs to the service. */
const INHERITED =
  /^(PATH|TZ|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|(HTTPS?|NO|ALL)_PROXY)$/;

function inherited(variables: Variables): Record<string, string> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => INHERITED.test(name)));
}

/**
 * Adds the secrets that are given as `X_FILE`, the form in which container platforms mount them. One newline at the end is
 * not part of the secret.
 * @throws ConfigError for a file that cannot be read, and for a secret that is given twice
 */
export function withSecretFiles(variables: Variables, secrets: readonly string[]): Variables {
  const found = secrets.flatMap((name): [string, string][] => {
    const file = variables[`${name}_FILE`];
    if (file === undefined) {
      return [];
    }
    if (variables[name] !== undefined) {
      throw new ConfigError(`${name}_FILE: ${name} is set too; only one of them may be`);
    }
    return [[name, contentOf(`${name}_FILE`, file)]];
  });
  return { ...variables, ...Object.fromEntries(found) };
}

function contentOf(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new ConfigError(`${variable}: the file cannot be read: ${errorMessage(error)}`, { cause: error });
  }
}

const HEAD = `# Configuration

<!-- Written by npm run docs:configuration from src/config; change it there. -->

The service reads environment variables and, where the environment has no value, a file \`.env\` in its working directory. All are optional,
except for \`ENCRYPTION_KEYS\` with \`DATABASE_URL\`. An empty value counts as absent. A wrong one ends the start, with a line for each that
names the variable and what would be right; a name that is nearly one of these, and none, is warned about in the log. Each secret \`X\` can be in a file instead, which \`X_FILE\` names; one newline at its end is not
part of the secret. [Configure](operations/configure.md) explains how those belong together that need more than a sentence.
`;

/** The text of `docs/configuration.md`. */
export function configurationReference(): string {
  const sections = configVariableGroups().map(
    ({ title, variables }) => `## ${title}\n\n${variables.map(entryOf).join('\n')}`,
  );
  return [HEAD, ...sections].join('\n');
}

/** Writes a variable with a heading of its own, which search and links lead to. */
function entryOf({ name, description, default: initial, form, isSecret, backends }: Variable): string {
  const facts = [
    form.startsWith('must ') ? `Value ${form}` : `Value: ${form}`,
    ...(initial === undefined ? [] : [`default: \`${initial}\``]),
    ...(backends.length === 0 ? [] : [`backend: ${backends.join(', ')}`]),
    ...(isSecret ? [`secret: also as \`${name}_FILE\``] : []),
  ];
  return `### \`${name}\`\n\n${description}\n\n${facts.join(' · ')}\n`;
}
