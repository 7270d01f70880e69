import { isURL } from 'class-validator';
import {
  ChoiceVariable,
  commaList,
  FromVariable,
  IntegerVariable,
  ListVariable,
  Satisfies,
  TextVariable,
} from '@slipway/configuration/variables.js';

export const ROLES = ['viewer', 'member', 'admin'] as const;
export type Role = (typeof ROLES)[number];

const MAPPING = 'must be a comma list of group=role, with the roles viewer, member and admin';

function isIssuer(address: unknown): boolean {
  return isURL(String(address), {
    require_tld: false,
    require_protocol: true,
    protocols: ['http', 'https'],
    disallow_auth: true,
    allow_query_components: false,
    allow_fragments: false,
  });
}

/** Returns null when an entry is not `group=role`; groups may contain `=`. */
function parseRoleMap(text: string): ReadonlyMap<string, Role> | null {
  const entries = commaList(text).map((entry) => {
    const end = entry.lastIndexOf('=');
    const role = ROLES.find((name) => name === entry.slice(end + 1).trim());
    return end > 0 && role !== undefined ? ([entry.slice(0, end).trim(), role] as const) : null;
  });
  return entries.every((entry) => entry !== null) ? new Map(entries) : null;
}

/** One identity provider of the company. Without an issuer, people sign in with keys alone. */
export class OidcConfig {
  // Keeps the issuer's trailing slash, as the `iss` of its tokens is compared literally.
  @FromVariable(
    'OIDC_ISSUER',
    'OpenID Connect issuer, exactly as it writes itself, such as `https://sso.example.com/realms/main`. By default people sign in with keys alone.',
    { form: 'an http(s) address' },
    Satisfies(isIssuer, 'must be an http(s) address without user, password and query'),
  )
  issuer: string | null;

  @ListVariable(
    'OIDC_AUDIENCE',
    "Audiences of the issuer's access tokens, a comma list: such tokens are keys. Without it they are not.",
  )
  audiences: string[];

  @TextVariable(
    'OIDC_CLIENT_ID',
    'Client for the sign-in of people, with `PUBLIC_URL/auth/callback` as its address.',
  )
  clientId: string | null;

  @TextVariable('OIDC_CLIENT_SECRET', 'Secret of that client. Without it the client is a public one.', {
    isSecret: true,
  })
  clientSecret: string | null;

  @TextVariable(
    'OIDC_SCOPES',
    'What a sign-in asks for; `offline_access` lets a session be renewed by the issuer.',
    {
      default: 'openid profile email',
    },
  )
  scopes: string;

  @TextVariable(
    'OIDC_USER_CLAIM',
    'Claim that tells people apart; it must never be given to another person.',
    {
      default: 'sub',
    },
  )
  userClaim: string;

  @TextVariable('OIDC_EMAIL_CLAIM', 'Claim with the address.', { default: 'email' })
  emailClaim: string;

  @TextVariable('OIDC_GROUPS_CLAIM', 'Claim with the groups; may be a path, such as `realm_access.roles`.', {
    default: 'groups',
  })
  groupsClaim: string;

  @TextVariable(
    'OIDC_GITHUB_LOGIN_CLAIM',
    'Claim with the login at GitHub, for suggested tasks of people for whom a GitHub App stands in.',
  )
  githubLoginClaim: string | null;

  @FromVariable(
    'OIDC_ROLE_MAP',
    'Roles of groups, as `group=role,…`: `viewer` only reads, `member` works, `admin` administers; the highest counts. Each token decides anew.',
    { form: 'a comma list of group=role', absent: new Map(), convert: parseRoleMap },
    Satisfies((map) => map instanceof Map, MAPPING),
  )
  roleMap: ReadonlyMap<string, Role>;

  @ChoiceVariable(
    'OIDC_DEFAULT_ROLE',
    'Role of people without such a group; `none` refuses them.',
    [...ROLES, 'none'],
    { default: 'member' },
  )
  defaultRole: Role | 'none';

  @IntegerVariable(
    'OIDC_KEY_MAX_DAYS',
    'Keys of people of the issuer stop working so long after they were last seen there, until they are seen again.',
    { default: '30', minimum: 1, maximum: 3_650, unit: 'days' },
  )
  keyMaxDays: number;
}
