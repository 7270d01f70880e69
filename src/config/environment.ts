import { Transform } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  IsString,
  IsUrl,
  Matches,
  Max,
  MaxLength,
  Min,
  MinLength,
  ValidateIf,
} from 'class-validator';

type UrlRules = Parameters<typeof IsUrl>[0];

const HTTP_URL: UrlRules = { require_tld: false, require_protocol: true, protocols: ['http', 'https'] };

const CLONE_URL: UrlRules = {
  ...HTTP_URL,
  disallow_auth: true,
  allow_query_components: false,
  allow_fragments: false,
};

function toNumber({ value }: { value: unknown }): unknown {
  return typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
}

const SECONDS = 'must be a whole number of seconds';
/** A hundred years: dates beyond it need a calendar of their own. */
const LONGEST_SECONDS = 3_153_600_000;
/** What a container label, a queue's name and a folder can all hold. */
const LABEL = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const LABEL_WANTED = 'must be 1 to 63 letters, digits or . _ -, beginning with a letter or digit';

function toBoolean({ value }: { value: unknown }): unknown {
  return value === 'true' ? true : value === 'false' ? false : value;
}

/** Environment variables, one member each; an empty value counts as absent. Documented in `docs/operations.md`. */
export class Environment {
  @Transform(toNumber)
  @IsInt({ message: 'must be a port number' })
  @Min(0, { message: 'must be a port number' })
  @Max(65_535, { message: 'must be a port number' })
  PORT: number = 3000;

  @IsString()
  HOST: string = '127.0.0.1';

  @IsOptional()
  @Transform(toNumber)
  @IsInt({ message: 'must be a port number' })
  @Min(0, { message: 'must be a port number' })
  @Max(65_535, { message: 'must be a port number' })
  METRICS_PORT?: number;

  @IsOptional()
  @Matches(/^postgres(ql)?:\/\//, { message: 'must start with postgres:// or postgresql://' })
  DATABASE_URL?: string;

  @Transform(toNumber)
  @IsInt({ message: 'must be a whole number from 1 to 500' })
  @Min(1, { message: 'must be a whole number from 1 to 500' })
  @Max(500, { message: 'must be a whole number from 1 to 500' })
  DATABASE_POOL_SIZE: number = 10;

  @IsString()
  DATA_DIR: string = '.data';

  @IsOptional()
  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  PUBLIC_URL?: string;

  @IsOptional()
  @MinLength(16, { message: 'must have at least 16 characters' })
  @MaxLength(512, { message: 'must have at most 512 characters' })
  @Matches(/^[\x21-\x7e]+$/, { message: 'must consist of printable characters without spaces' })
  BOOTSTRAP_API_KEY?: string;

  @IsOptional()
  @IsString()
  ENCRYPTION_KEYS?: string;

  @IsOptional()
  @IsString()
  CORS_ORIGINS?: string;

  @Transform(toNumber)
  @IsInt({ message: 'must be a whole number, 0 to switch the limit off' })
  @Min(0, { message: 'must be a whole number, 0 to switch the limit off' })
  RATE_LIMIT_PER_MINUTE: number = 600;

  @IsIn(['debug', 'info', 'warn', 'error'], { message: 'must be debug, info, warn or error' })
  LOG_LEVEL: 'debug' | 'info' | 'warn' | 'error' = 'info';

  @IsOptional()
  @IsIn(['json', 'pretty'], { message: 'must be json or pretty' })
  LOG_FORMAT?: 'json' | 'pretty';

  @Transform(toBoolean)
  @IsBoolean({ message: 'must be true or false' })
  LOG_REQUESTS: boolean = true;

  @IsOptional()
  @IsString()
  GIT_HOST_ALLOWLIST?: string;

  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  GITHUB_API_URL: string = 'https://api.github.com';

  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  GITLAB_API_URL: string = 'https://gitlab.com/api';

  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  BITBUCKET_API_URL: string = 'https://api.bitbucket.org/2.0';

  @IsOptional()
  @IsUrl(CLONE_URL, { message: 'must be an http(s) address without user, password or query' })
  GITHUB_CLONE_URL?: string;

  @IsOptional()
  @IsUrl(CLONE_URL, { message: 'must be an http(s) address without user, password or query' })
  GITLAB_CLONE_URL?: string;

  @IsOptional()
  @IsUrl(CLONE_URL, { message: 'must be an http(s) address without user, password or query' })
  BITBUCKET_CLONE_URL?: string;

  @Transform(toBoolean)
  @IsBoolean({ message: 'must be true or false' })
  AGENT_EXPOSE_GIT_TOKENS: boolean = true;

  @Transform(toNumber)
  @IsInt({ message: 'must be a whole number of seconds from 1 to 3600' })
  @Min(1, { message: 'must be a whole number of seconds from 1 to 3600' })
  @Max(3600, { message: 'must be a whole number of seconds from 1 to 3600' })
  LLM_TIMEOUT_SECONDS: number = 120;

  @IsOptional()
  @Transform(toNumber)
  @IsInt({ message: 'must be a whole number of tokens, at least 1000' })
  @Min(1000, { message: 'must be a whole number of tokens, at least 1000' })
  AGENT_CONDENSER_TOKENS?: number;

  @IsOptional()
  @IsString()
  MODEL_PRICES_FILE?: string;

  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  TAVILY_API_URL: string = 'https://api.tavily.com';

  @IsIn(['process', 'docker', 'kubernetes'], { message: 'must be process or docker' })
  SANDBOX_BACKEND: 'process' | 'docker' | 'kubernetes' = 'process';

  @IsOptional()
  @IsString()
  SANDBOX_SPECS_FILE?: string;

  @IsIn(['auto', 'bwrap', 'none'], { message: 'must be auto, bwrap or none' })
  SANDBOX_ISOLATION: 'auto' | 'bwrap' | 'none' = 'auto';

  @Transform(toBoolean)
  @IsBoolean({ message: 'must be true or false' })
  ALLOW_UNSANDBOXED: boolean = false;

  @IsOptional()
  @Matches(LABEL, { message: LABEL_WANTED })
  HOST_ID?: string;

  @IsOptional()
  @Matches(LABEL, { message: LABEL_WANTED })
  INSTANCE_ID?: string;

  @IsOptional()
  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  SANDBOX_CALLBACK_URL?: string;

  @IsOptional()
  @Matches(/^[A-Za-z0-9][\w.-]*$/, { message: 'must be the name of a Docker network' })
  SANDBOX_DOCKER_NETWORK?: string;

  @IsOptional()
  @Matches(/^[A-Za-z0-9.:-]+$/, { message: 'must be a host name or an IP address, without scheme and port' })
  SANDBOX_ADDRESS?: string;

  @IsIn(['proxy', 'direct'], { message: 'must be proxy or direct' })
  SANDBOX_EXPOSE: 'proxy' | 'direct' = 'proxy';

  @IsOptional()
  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  @Matches(/^https?:\/\/[^/?#@]+\/?$/, { message: 'must be scheme and host name (and port), without a path' })
  SANDBOX_PORTS_URL?: string;

  @IsOptional()
  @Matches(/^(unix|tcp|https?|npipe):\/\/./, {
    message: 'must be the address of a Docker engine, such as unix:///var/run/docker.sock',
  })
  DOCKER_HOST?: string;

  @Transform(toNumber)
  @IsInt({ message: 'must be a whole number from 1 to 10000' })
  @Min(1, { message: 'must be a whole number from 1 to 10000' })
  @Max(10_000, { message: 'must be a whole number from 1 to 10000' })
  MAX_RUNNING_SANDBOXES: number = 5;

  @IsIn(['pause_oldest_idle', 'reject'], { message: 'must be pause_oldest_idle or reject' })
  SANDBOX_LIMIT_POLICY: 'pause_oldest_idle' | 'reject' = 'pause_oldest_idle';

  @Transform(toNumber)
  @IsInt({ message: `${SECONDS}, 0 to never pause` })
  @Min(0, { message: `${SECONDS}, 0 to never pause` })
  @Max(LONGEST_SECONDS, { message: `${SECONDS}, 0 to never pause` })
  SANDBOX_IDLE_TIMEOUT_SECONDS: number = 1800;

  @Transform(toNumber)
  @IsInt({ message: `${SECONDS}, 0 to keep them` })
  @Min(0, { message: `${SECONDS}, 0 to keep them` })
  @Max(LONGEST_SECONDS, { message: `${SECONDS}, 0 to keep them` })
  SANDBOX_RETENTION_SECONDS: number = 0;

  @Transform(toNumber)
  @IsInt({ message: SECONDS })
  @Min(0, { message: SECONDS })
  @Max(LONGEST_SECONDS, { message: SECONDS })
  SANDBOX_WAIT_SECONDS: number = 600;

  @Transform(toNumber)
  @IsInt({ message: SECONDS })
  @Min(0, { message: SECONDS })
  @Max(LONGEST_SECONDS, { message: SECONDS })
  SANDBOX_ORPHAN_GRACE_SECONDS: number = 60;

  @Transform(toNumber)
  @IsNumber({}, { message: 'must be a number of seconds from 0.1 to 60' })
  @Min(0.1, { message: 'must be a number of seconds from 0.1 to 60' })
  @Max(60, { message: 'must be a number of seconds from 0.1 to 60' })
  GIT_REQUEST_TIMEOUT_SECONDS: number = 8;

  @Transform(toNumber)
  @IsNumber({}, { message: 'must be a number of seconds from 0.1 to 120' })
  @Min(0.1, { message: 'must be a number of seconds from 0.1 to 120' })
  @Max(120, { message: 'must be a number of seconds from 0.1 to 120' })
  SUGGESTED_TASKS_TIMEOUT_SECONDS: number = 12;

  @IsOptional()
  @IsUrl(HTTP_URL, { message: 'must be the full http(s) address of the realm, …/realms/NAME' })
  @Matches(/\/realms\/[^/]+\/?$/, { message: 'must be the full http(s) address of the realm, …/realms/NAME' })
  ENTERPRISE_SSO_ISSUER?: string;

  @ValidateIf((env: Environment) => env.ENTERPRISE_SSO_ISSUER !== undefined)
  @Matches(/^[A-Za-z0-9._-]+$/, {
    message: 'must name the identity provider in Keycloak (letters, digits, . _ -)',
  })
  ENTERPRISE_SSO_ALIAS?: string;

  @ValidateIf((env: Environment) => env.ENTERPRISE_SSO_ISSUER !== undefined)
  @IsIn(['github', 'gitlab', 'bitbucket_dc'], { message: 'must be github, gitlab or bitbucket_dc' })
  ENTERPRISE_SSO_KIND?: 'github' | 'gitlab' | 'bitbucket_dc';

  @IsOptional()
  @IsString()
  ENTERPRISE_SSO_HOST?: string;

  @IsOptional()
  @IsString()
  ENTERPRISE_SSO_CLIENT_ID?: string;

  @IsOptional()
  @IsString()
  ENTERPRISE_SSO_CLIENT_SECRET?: string;

  @IsIn(['v1', 'v2'], { message: 'must be v1 or v2' })
  ENTERPRISE_SSO_API_VERSION: 'v1' | 'v2' = 'v1';

  @IsOptional()
  @IsString()
  OUTBOUND_ALLOWLIST?: string;

  @IsOptional()
  @IsUrl(HTTP_URL, { message: 'must be an http(s) address' })
  HTTPS_PROXY?: string;

  @IsOptional()
  @IsString()
  NO_PROXY?: string;
}
