import { type KeyObject, verify } from 'node:crypto';
import { isJsonObject, jsonAt, jsonText, parseJson } from '@slipway/common/json-access.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeWorld } from './fake-world.js';

/** A GitHub App, as its own requests see it. */
export interface FakeGithubApp {
  id: string;
  publicKey: KeyObject;
  installations: FakeInstallation[];
  /** By token. */
  issued: Map<string, FakeIssued>;
  /** Of this host, epoch milliseconds. */
  now: () => number;
  /** The signature's time is compared with a clock that is so far behind. */
  behindMs?: number;
  /** Default one hour. */
  lifetimeMs?: number;
}

export interface FakeInstallation {
  id: number;
  owner: string;
  /** Names without owner that were selected; `all` by default. */
  repositories?: string[];
  permissions: Record<string, string>;
  isSuspended?: boolean;
}

export interface FakeIssued {
  owner: string;
  /** Null: all of its installation. */
  repositories: string[] | null;
  permissions: Record<string, string>;
  expiresAt: number;
}

const RANKS = ['read', 'write', 'admin'];

/** What GitHub lets an App do by its signature; null for all other addresses. */
export function answerApp(world: FakeWorld, request: FakeRequest): FakeResponse | null {
  const { app } = world;
  const path = request.path.replace(/^\/api\/v3/, '');
  const isInstallation = /^\/repos\/([^/]+)\/([^/]+)\/installation$/.exec(path);
  const isToken = /^\/app\/installations\/(\d+)\/access_tokens$/.exec(path);
  if (app === undefined || (isInstallation === null && isToken === null && path !== '/app/installations')) {
    return null;
  }
  const refused = refusedSignature(app, request.headers['authorization'] ?? '');
  if (refused !== null) {
    return refused;
  }
  if (isInstallation !== null) {
    const [, owner = '', name = ''] = isInstallation;
    const found = app.installations.find((each) => isSame(each.owner, owner) && has(world, each, name));
    return found ? { body: shown(found) } : failure(404, 'Not Found');
  }
  if (isToken !== null) {
    const found = app.installations.find(({ id }) => String(id) === isToken[1]);
    return found ? issue(world, app, found, request) : failure(404, 'Not Found');
  }
  const [size, page] = [Number(request.query.get('per_page') ?? 30), Number(request.query.get('page') ?? 1)];
  return { body: app.installations.slice((page - 1) * size, page * size).map(shown) };
}

/** What a token of an installation may not do there; null: it may, or is none. */
export function refusedToken(world: FakeWorld, request: FakeRequest): FakeResponse | null {
  const issued = issuedFor(world, request);
  if (issued === undefined || world.app === undefined) {
    return null;
  }
  const path = request.path.replace(/^\/api\/v3/, '');
  if (issued.expiresAt <= world.app.now()) {
    return failure(401, 'Bad credentials');
  }
  const [, owner, name] = /^\/repos\/([^/]+)\/([^/]+)/.exec(path) ?? [];
  if (owner !== undefined && name !== undefined) {
    const isPublic = world.repositories.find((each) => each.name === `${owner}/${name}`)?.isPublic === true;
    if (!reaches(issued, `${owner}/${name}`)) {
      return isPublic && request.method !== 'GET'
        ? failure(403, 'Resource not accessible by integration')
        : failure(404, 'Not Found');
    }
    const mayOpen = isAtLeast(issued.permissions['pull_requests'], 'write');
    return request.method !== 'GET' && path.includes('/pulls') && !mayOpen
      ? failure(403, 'Resource not accessible by integration')
      : null;
  }
  return /^\/(user|search)(\/|$)/.test(path) ? failure(403, 'Resource not accessible by integration') : null;
}

export function issuedFor(world: FakeWorld, { headers }: FakeRequest): FakeIssued | undefined {
  return world.app?.issued.get(headers['authorization']?.replace(/^\w+ /, '') ?? '');
}

/** The part of a world that a token of an installation sees. */
export function seenBy(world: FakeWorld, issued: FakeIssued): FakeWorld {
  const sees = ({ repository }: { repository: string }): boolean => reaches(issued, repository);
  return {
    ...world,
    repositories: world.repositories.filter(({ name }) => reaches(issued, name)),
    changeRequests: world.changeRequests.filter(sees),
    issues: world.issues.filter(sees),
  };
}

function reaches(issued: FakeIssued, repository: string): boolean {
  const [owner, name = ''] = repository.split('/');
  return owner === issued.owner && (issued.repositories?.includes(name) ?? true);
}

function refusedSignature(app: FakeGithubApp, authorization: string): FakeResponse | null {
  const [head = '', body = '', signature = ''] = authorization.replace(/^bearer /i, '').split('.');
  const signed = Buffer.from(signature, 'base64url');
  if (signature === '' || !verify('RSA-SHA256', Buffer.from(`${head}.${body}`), app.publicKey, signed)) {
    return failure(401, 'A JSON web token could not be decoded');
  }
  const claims: unknown = parseJson(Buffer.from(body, 'base64url').toString());
  const [iat, exp] = [Number(jsonAt(claims, 'iat')), Number(jsonAt(claims, 'exp'))];
  const now = (Date.now() - (app.behindMs ?? 0)) / 1000;
  const date = { date: new Date(now * 1000).toUTCString() };
  if (exp > now + 600) {
    return failure(401, "'Expiration time' claim ('exp') is too far in the future", date);
  }
  if (iat > now) {
    return failure(
      401,
      "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
      date,
    );
  }
  return String(jsonAt(claims, 'iss')) === app.id ? null : failure(404, 'Integration not found');
}

function issue(
  world: FakeWorld,
  app: FakeGithubApp,
  installation: FakeInstallation,
  { body }: FakeRequest,
): FakeResponse {
  if (installation.isSuspended === true) {
    return failure(403, 'This installation has been suspended');
  }
  const wanted: unknown = parseJson(body);
  const names = jsonAt(wanted, 'repositories');
  const repositories = Array.isArray(names) ? names.map(String) : null;
  if (repositories?.some((name) => !has(world, installation, name)) === true) {
    return failure(
      422,
      'There is at least one repository that does not exist or is not accessible to the parent installation.',
    );
  }
  const asked = jsonAt(wanted, 'permissions');
  const permissions = isJsonObject(asked)
    ? Object.fromEntries(Object.keys(asked).map((name) => [name, jsonText(asked, name) ?? '']))
    : installation.permissions;
  if (
    Object.entries(permissions).some(([name, level]) => !isAtLeast(installation.permissions[name], level))
  ) {
    return failure(422, 'The permissions requested are not granted to this installation.');
  }
  const number = app.issued.size + 1;
  // Of the form that GitHub has begun to issue in 2026.
  const token = `ghs_${app.id}_eyJhbGciOiJFUzI1NiJ9.${String(number).padStart(8, '0')}${'Ab3dE_f-'.repeat(20)}.sig`;
  const expiresAt = app.now() + (app.lifetimeMs ?? 3_600_000);
  app.issued.set(token, { owner: installation.owner, repositories, permissions, expiresAt });
  return {
    status: 201,
    body: {
      token,
      expires_at: new Date(expiresAt).toISOString().replace(/\.\d+Z$/, 'Z'),
      permissions,
      repository_selection: repositories === null && !installation.repositories ? 'all' : 'selected',
    },
  };
}

function has(world: FakeWorld, { owner, repositories }: FakeInstallation, name: string): boolean {
  const isThere = world.repositories.some((each) => isSame(each.name, `${owner}/${name}`));
  return isThere && (repositories?.some((each) => isSame(each, name)) ?? true);
}

/** GitHub takes a name in another case for the same. */
function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

function isAtLeast(has: string | undefined, level: string): boolean {
  return RANKS.indexOf(has ?? '') >= Math.max(RANKS.indexOf(level), 0);
}

function shown({ id, owner, permissions, repositories, isSuspended }: FakeInstallation) {
  return {
    id,
    account: { login: owner, type: 'Organization' },
    permissions,
    repository_selection: repositories ? 'selected' : 'all',
    suspended_at: isSuspended === true ? '2026-01-01T00:00:00Z' : null,
  };
}

function failure(status: number, message: string, headers: Record<string, string> = {}): FakeResponse {
  return {
    status,
    headers,
    body: { message, documentation_url: 'https://docs.github.com/rest', status: `${status}` },
  };
}
