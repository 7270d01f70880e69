import type { CipherKey } from '../common/crypto/secret-cipher.js';

export interface HttpConfig {
  port: number;
  host: string;
  /** How clients reach the service, without a trailing slash; null when nobody said. */
  publicUrl: string | null;
  corsOrigins: string[];
  /** Requests per key and minute, per replica; 0 = unlimited. */
  rateLimitPerMinute: number;
  /** Where metrics are told, on the same host; null: nowhere. */
  metricsPort: number | null;
}

export interface LogConfig {
  level: 'debug' | 'info' | 'warn' | 'error';
  format: 'json' | 'pretty';
  /** One line per request. */
  requests: boolean;
  /** Greet whoever started the service: at a terminal, and on the embedded database (nobody's production). */
  welcome: boolean;
}

export interface DatabaseConfig {
  /** Null: the embedded PostgreSQL in `DATA_DIR`. */
  url: string | null;
  poolSize: number;
}

export interface TrustConfig {
  bootstrapApiKey: string | null;
  /** Null: generated into `DATA_DIR` (embedded database only). */
  encryptionKeys: CipherKey[] | null;
}

export interface EnterpriseSsoConfig {
  issuer: string;
  alias: string;
  kind: 'github' | 'gitlab' | 'bitbucket_dc';
  host: string | null;
  clientId: string | null;
  clientSecret: string | null;
  apiVersion: 'v1' | 'v2';
}

export interface GitConfig {
  hostAllowlist: string[];
  githubApiUrl: string;
  gitlabApiUrl: string;
  bitbucketApiUrl: string;
  /** Where repositories of tokens without a host are cloned from, and those of nobody's token; no trailing slash. */
  githubCloneUrl: string;
  gitlabCloneUrl: string;
  bitbucketCloneUrl: string;
  enterpriseSso: EnterpriseSsoConfig | null;
  /** Deadline of one request to a git host, milliseconds. */
  requestTimeoutMs: number;
  /** How long suggested tasks wait for all providers, milliseconds. */
  tasksTimeoutMs: number;
}

export interface AgentConfig {
  /** Whether the tools of agents get the user's git tokens, as variables and through git's credential helper. */
  exposeGitTokens: boolean;
  /** How long a language model may stay silent, seconds. */
  llmTimeoutSeconds: number;
  /** Above how many tokens the oldest part of a conversation is summarised; null: 60 % of the model's context. */
  condenserTokens: number | null;
  /** Absolute path of the operator's list of model prices. */
  modelPricesFile: string | null;
  /** Base address of Tavily's search API. */
  tavilyApiUrl: string;
}

export interface SandboxConfig {
  backend: 'process' | 'docker';
  /** Absolute path of the list of specifications; null: the built-in list. */
  specsFile: string | null;
  /** Of the process backend. */
  isolation: 'auto' | 'bwrap' | 'none';
  /** Several users may have process sandboxes that nothing separates. */
  allowUnsandboxed: boolean;
  /** Which machine's sandboxes this replica looks after; null: the id kept in `DATA_DIR`. */
  hostId: string | null;
  /** Value of the label that marks what we made; null: the id kept in the database. */
  instanceId: string | null;
  /** How agent servers reach the service, without a trailing slash; null: derived. */
  callbackUrl: string | null;
  /** The network that the service and docker sandboxes share. */
  dockerNetwork: string | null;
  /** Host name or IP of this machine at which other hosts reach its sandboxes; null: loopback only. */
  address: string | null;
  /** Whether clients talk to agent servers through the service or directly. */
  expose: 'proxy' | 'direct';
  /**
   * Scheme and host name (and port) below which the ports of what agents start have host names; null: below `localhost`
   * where `PUBLIC_URL` names this machine, else nowhere.
   */
  portsUrl: string | null;
  dockerHost: string | null;
  /** Sandboxes that one user may have running at a time. */
  maxRunning: number;
  /** What happens when one more is wanted: the longest idle one is paused, or the request refused. */
  limitPolicy: 'pause_oldest_idle' | 'reject';
  /** Seconds without activity after which a sandbox is paused; 0: never. */
  idleTimeoutSeconds: number;
  /** Seconds after which a sandbox that does not run is removed; 0: never. */
  retentionSeconds: number;
  /** Seconds that the start of a conversation waits for a place. */
  waitSeconds: number;
  /** Age in seconds from which a sandbox of ours without a row is removed. */
  orphanGraceSeconds: number;
  /** Variables of the service itself that programs of process sandboxes need as well: paths, language, proxies, CAs. */
  environment: Readonly<Record<string, string>>;
}

export interface OutboundConfig {
  /** Hosts that user-given LLM and MCP addresses may name; null = any. */
  allowlist: string[] | null;
  proxyUrl: string | null;
  noProxy: string | null;
}

/** The validated configuration in typed groups; injected by this class. */
export class AppConfig {
  readonly http: HttpConfig;
  readonly log: LogConfig;
  readonly database: DatabaseConfig;
  /** Absolute path. */
  readonly dataDir: string;
  readonly trust: TrustConfig;
  readonly git: GitConfig;
  readonly agent: AgentConfig;
  readonly sandboxes: SandboxConfig;
  readonly outbound: OutboundConfig;

  constructor(groups: AppConfig) {
    this.http = groups.http;
    this.log = groups.log;
    this.database = groups.database;
    this.dataDir = groups.dataDir;
    this.trust = groups.trust;
    this.git = groups.git;
    this.agent = groups.agent;
    this.sandboxes = groups.sandboxes;
    this.outbound = groups.outbound;
  }
}
