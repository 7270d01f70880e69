import { callerHas, isCaller } from '@slipway/api/requests/request-context.js';
import { DomainError } from './errors/domain-error.js';

/** What a key may do. None includes another one. */
export const SCOPES = ['read', 'run', 'settings', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];

/** What a device gets that a person lets in. */
export const DEVICE_SCOPES: readonly Scope[] = ['read', 'run'];

const READS: readonly string[] = ['GET', 'HEAD'];

/**
 * Maps a route's path, with its parameters as the route spells them (`:id` or `{id}`), to the scope that reads need and the
 * scope that all other methods need. The first matching row counts, and a path without a row is an error.
 */
const TABLE: readonly (readonly [path: RegExp, reads: Scope, changes: Scope])[] = [
  [/^\/api\/v1\/users\/(?:me(?:\/|$)|git-info$)/, 'read', 'settings'],
  [/^\/api\/v1\/(?:users|audit|diagnostics)(?:\/|$)/, 'admin', 'admin'],
  // The links in this answer open what runs in the sandbox.
  [/^\/api\/v1\/sandboxes\/[^/]+\/ports$/, 'run', 'run'],
  // Starting, continuing and ending work.
  [/^\/api\/automation\/v1\/(?:[^/]+\/dispatch|runs\/[^/]+\/cancel)$/, 'read', 'run'],
  [/^\/api\/v1\/(?:app-conversations|conversations?|events|sandboxes|sandbox-specs)(?:\/|$)/, 'read', 'run'],
  [/^\/api\/conversations(?:\/|$)/, 'read', 'run'],
  // A request in the body of another may change what it likes, and our own tools do.
  [/^\/(?:api\/cloud-proxy|mcp)$/, 'run', 'run'],
  // What is kept, and works on after the key has ended: keys and devices, automations, endpoints, secrets.
  [/^\/oauth\/device\//, 'settings', 'settings'],
  [/^\/api\/automation\/v1(?:\/|$)/, 'read', 'settings'],
  [
    /^\/api\/v1\/(?:api-keys|push|secrets|settings|webhook-endpoints|model-check)(?:\/|$)/,
    'read',
    'settings',
  ],
  [/^\/api\/v1\/(?:config|git|skills)\//, 'read', 'settings'],
  [/^\/api\/(?:secrets|settings|add-git-providers|unset-provider-tokens)(?:\/|$)/, 'read', 'settings'],
  [/^\/api\/organizations\/[^/]+\/conversations(?:\/|$)/, 'admin', 'admin'],
  [/^\/api\/organizations\/[^/]+\/members(?:\/|$)/, 'read', 'admin'],
  [/^\/api\/(?:agent-profiles|keys|options|organizations|user)(?:\/|$)/, 'read', 'settings'],
];

/**
 * What keys for some repositories may do: what is about conversations, each of which has a repository or is unknown to
 * them, and what only lists repositories, tasks, models and agents. All else is refused, as is a route that is new.
 */
const FOR_SOME_REPOSITORIES: readonly (readonly [methods: readonly string[], path: RegExp])[] = [
  [['POST'], /^\/api\/v1\/api-keys$/],
  [
    ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
    /^\/api\/v1\/(?:app-conversations|conversations?|events)(?:\/|$)/,
  ],
  [
    READS,
    /^\/api\/user\/(?:suggested-tasks|repositories|repository\/branches|search\/(?:repositories|branches))$/,
  ],
  [READS, /^\/api\/v1\/git\/(?:suggested-tasks|repositories|branches)\/search$/],
  [READS, /^\/api\/(?:keys\/current|options\/[^/]+)$/],
  [READS, /^\/api\/v1\/(?:config|sandbox-specs)(?:\/|$)/],
];

/** Whether keys for some repositories may use the operation at all. @param path as in {@link scopeOf} */
export function isForSomeRepositories(method: string, path: string): boolean {
  return FOR_SOME_REPOSITORIES.some(([methods, pattern]) => methods.includes(method) && pattern.test(path));
}

/**
 * What a key needs for an operation that is not open to everybody.
 * @param path of the route, not of the request: an address may be written in more than one way
 * @throws Error for a route without a row
 */
export function scopeOf(method: string, path: string): Scope {
  const row = TABLE.find(([pattern]) => pattern.test(path));
  if (row === undefined) {
    throw new Error(`no row of the table of scopes is about ${method} ${path}`);
  }
  return row[READS.includes(method) ? 1 : 2];
}

export function insufficientScope(scope: Scope): DomainError {
  return new DomainError(
    'insufficient_scope',
    `This needs a key with the scope ${scope}. Those of viewers have read alone.`,
    {
      extensions: { scope },
    },
  );
}

/** @throws DomainError insufficient_scope, which names what is missing */
export function requireScope({ scopes }: { scopes: readonly Scope[] }, scope: Scope): void {
  if (!scopes.includes(scope)) {
    throw insufficientScope(scope);
  }
}

/** What a key may do. @param scopes of the key; null for all that its user may @param readsOnly the user's role */
export function scopesWithin(scopes: readonly Scope[] | null, readsOnly: boolean): readonly Scope[] {
  return (scopes ?? SCOPES).filter((scope) => !readsOnly || scope === 'read');
}

/** Noted with a key that may have what opens sandboxes of its user. */
export const OPENS_SANDBOXES = 'opens sandboxes';

/** Whether what opens a sandbox of this user may stand in the answer: for its owner alone, as the key may. */
export function callerMayOpenSandboxesOf(ownerId: string): boolean {
  return isCaller(ownerId) && callerHas(OPENS_SANDBOXES);
}
