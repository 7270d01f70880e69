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

  @IsUrl(CLONE_URL, { message: 'must be an http(s) address without user, password or query' })
  GITHUB_CLONE_URL: string = 'https://github.com';

  @IsUrl(CLONE_URL, { message: 'must be an http(s) address without user, password or query' })
  GITLAB_CLONE_URL: string = 'https://gitlab.com';

  @IsUrl(CLONE_URL, { message: 'must be an http(s) address without user, password or query' })
  BITBUCKET_CLONE_URL: string = 'https://bitbucket.org';

  @Transform(toBoolean)
  @IsBoolean({ message: 'must be true or false' })
  AGENT_EXPOSE_GIT_TOKENS: boolean = true;

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
