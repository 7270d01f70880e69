import { hash } from 'node:crypto';
import { cleanText, textHead } from '@slipway/common/well-formed-text.js';
import { isGithubLogin } from '../../config/github-app-config.js';
import type { OidcConfig, Role } from '../../config/oidc-config.js';
import { ADMIN_EMAIL } from '../user.repository.js';

export type Claims = Readonly<Record<string, unknown>>;

/** What a token says of a person or a service. */
export interface Person {
  issuer: string;
  subject: string;
  /** Lower case; made up for a token without one. */
  email: string;
  emailVerified: boolean;
  name: string | null;
  /** Null: left out for their number, which is not the same as none. */
  groups: readonly string[] | null;

  /** Those that are stored for administrators to see, as they read them: those that give a role first. */
  shownGroups: string[] | null;
  /** At GitHub, where the operator names a claim that has it. */
  githubLogin: string | null;
  /** The client that speaks for itself; null for a person. */
  client: string | null;
  issuedAt: Date;
}

type ClaimNames = Pick<
  OidcConfig,
  'userClaim' | 'emailClaim' | 'groupsClaim' | 'githubLoginClaim' | 'roleMap'
>;

/** Seconds that a date can have. */
const MAX_TIME = 8.64e12;
const MAX_SUBJECT = 255;
const MAX_EMAIL = 254;
const MAX_NAME = 200;
const MAX_SHOWN_GROUPS = 50;
const MAX_GROUP = 200;
const EMAIL = /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u;
const RANK: Record<Role, number> = { viewer: 0, member: 1, admin: 2 };

/** Returns null for a token without issuer or subject. */
export function personOf(claims: Claims, names: ClaimNames): Person | null {
  const [issuer, subject] = [text(claims['iss']), personSubject(claims, names.userClaim)];
  if (issuer === null || subject === null) {
    return null;
  }
  const client = clientOf(claims);
  const email = text(claimAt(claims, names.emailClaim))?.toLowerCase() ?? '';
  const groups = areLeftOut(claims, names.groupsClaim) ? null : groupsOf(claimAt(claims, names.groupsClaim));
  return {
    issuer,
    subject,
    email: isAddress(email) ? email : placeholderAddress(issuer, subject),
    emailVerified: claims['email_verified'] !== false && claims['email_verified'] !== 'false',
    name: shownName(client ?? text(claims['name']) ?? text(claims['preferred_username'])),
    groups,
    shownGroups: groups && shownOf(groups, names.roleMap),
    githubLogin: loginOf(claims, names.githubLoginClaim),
    client,
    issuedAt: issuedAt(claims),
  };
}

/** The beginning of time for a token that does not say it: it counts as older than any other. */
export function issuedAt({ iat }: Claims): Date {
  return new Date(typeof iat === 'number' && Math.abs(iat) < MAX_TIME ? iat * 1000 : 0);
}

/** What an ID token may have, and an access token has no use for. */
const OF_ID_TOKENS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'];
/**
 * What says for whom or for what an access token was made: RFC 9068 (`client_id`, `scope`), and as Okta (`cid`, `scp`),
 * Entra ID (`scp`, `appid`, `azpacr`, `appidacr`, `idtyp`) and Auth0 (`gty`) write it.
 */
const OF_ACCESS_TOKENS = ['scope', 'scp', 'client_id', 'cid', 'appid', 'appidacr', 'azpacr', 'idtyp', 'gty'];

/**
 * Whether a token is meant for an API. An ID token tells a client who signed in, and names that client as its audience,
 * which may be the audience of our API as well. Its header says nothing; by RFC 9068 that of an access token does, and
 * Keycloak (`typ`) and Cognito (`token_use`) have a claim for it.
 */
export function isAccessToken({ typ }: { typ?: unknown }, claims: Claims): boolean {
  const kind = text(claims['typ'] ?? claims['token_use'])?.toLowerCase();
  if (kind === 'bearer' || kind === 'dpop' || kind === 'access') {
    // Keycloak before version 24 has the nonce in both kinds.
    return claims['events'] === undefined;
  }
  if (kind === 'id' || OF_ID_TOKENS.some((name) => claims[name] !== undefined)) {
    return false;
  }
  const isMarked = typeof typ === 'string' && /^(application[/])?at[+]jwt$/i.test(typ);
  const { aud, azp } = claims;
  // An ID token is for the client that got it.
  const isForAnother = text(azp) !== null && ![aud].flat().includes(azp);
  return isMarked || isForAnother || OF_ACCESS_TOKENS.some((name) => claims[name] !== undefined);
}

/**
 * Who a token is about, letter by letter: two that differ in a space at the end are two people. Null for none, and for what
 * cannot be stored as it is.
 */
export function personSubject(claims: Claims, userClaim: string): string | null {
  const subject = claimAt(claims, userClaim);
  const isUsable =
    typeof subject === 'string' &&
    subject.trim() !== '' &&
    subject.length <= MAX_SUBJECT &&
    subject.isWellFormed() &&
    !/\p{Cc}/u.test(subject);
  return isUsable ? subject : null;
}

/** The highest role of the groups; null where no group has one. */
export function mappedRole(groups: readonly string[], map: ReadonlyMap<string, Role>): Role | null {
  const roles = groups.flatMap((group) => map.get(group) ?? []);
  return roles.reduce<Role | null>(
    (highest, role) => (highest === null || RANK[role] > RANK[highest] ? role : highest),
    null,
  );
}

/** A claim of that very name (Auth0's are addresses, with dots), else the path. */
function claimAt(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name)
    ? claims[name]
    : name.split('.').reduce<unknown>((value, part) => memberOf(value, part), claims);
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Claims)[name]
    : undefined;
}

/**
 * Entra ID refers to Microsoft Graph where the groups are too many
 * (https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference#groups-overage-claim).
 */
function areLeftOut(claims: Claims, groupsClaim: string): boolean {
  const { hasgroups: hasGroups } = claims;
  return (
    memberOf(claims['_claim_names'], groupsClaim) !== undefined || hasGroups === true || hasGroups === 'true'
  );
}

function loginOf(claims: Claims, claim: string | null): string | null {
  const login = claim === null ? null : text(claimAt(claims, claim));
  return login !== null && isGithubLogin(login) ? login : null;
}

function groupsOf(value: unknown): string[] {
  return [value].flat().filter((group) => typeof group === 'string');
}

function shownOf(groups: readonly string[], map: ReadonlyMap<string, Role>): string[] {
  const [known, others] = [groups.filter((name) => map.has(name)), groups.filter((name) => !map.has(name))];
  return [...known, ...others].slice(0, MAX_SHOWN_GROUPS).map((name) => textHead(cleanText(name), MAX_GROUP));
}

/**
 * A token of client credentials: RFC 9068 has the client as its subject, and these providers say it in a claim of their
 * own: Keycloak (the name of its service accounts), Entra ID (`idtyp`), Auth0 (`gty`).
 */
function clientOf(claims: Claims): string | null {
  const { sub, gty, idtyp } = claims;
  const client = text(claims['azp']) ?? text(claims['client_id']) ?? text(claims['appid']);
  const isClient =
    (client !== null && sub === client) ||
    isServiceAccount(claims, client) ||
    idtyp === 'app' ||
    gty === 'client-credentials';
  return isClient ? (client ?? text(sub)) : null;
}

/**
 * Recognizes Keycloak's service accounts. A person may choose such a name, but their token has a `sid`, and hardly the name
 * of the client that they use.
 */
function isServiceAccount(claims: Claims, client: string | null): boolean {
  const name = `service-account-${client ?? ''}`.toLowerCase();
  return client !== null && claims['sid'] === undefined && text(claims['preferred_username']) === name;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
}

/** One line of what can be stored. */
function shownName(name: string | null): string | null {
  return name === null
    ? null
    : textHead(cleanText(name).replace(/[\p{Cc}\p{Bidi_Control}]/gu, ' '), MAX_NAME).trim() || null;
}

/** False for the addresses of users that we make ourselves, which belong to no issuer. */
function isAddress(email: string): boolean {
  const isReserved = email.endsWith('.invalid') || email === ADMIN_EMAIL;
  return EMAIL.test(email) && email.length <= MAX_EMAIL && email.isWellFormed() && !isReserved;
}

function placeholderAddress(issuer: string, subject: string): string {
  const digest = hash('sha256', `${issuer}\n${subject}`, 'hex').slice(0, 16);
  return `${digest}@${new URL(issuer).hostname}.invalid`;
}
