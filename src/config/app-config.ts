import type { CipherKey } from '../common/crypto/secret-cipher.js';

export interface HttpConfig {
  port: number;
  host: string;
  /** How clients reach the service, without a trailing slash; null when nobody said. */
  publicUrl: string | null;
  corsOrigins: string[];
  /** Requests per key and minute, per replica; 0 = unlimited. */
  rateLimitPerMinute: number;
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
  readonly outbound: OutboundConfig;

  constructor(groups: AppConfig) {
    this.http = groups.http;
    this.log = groups.log;
    this.database = groups.database;
    this.dataDir = groups.dataDir;
    this.trust = groups.trust;
    this.git = groups.git;
    this.agent = groups.agent;
    this.outbound = groups.outbound;
  }
}
