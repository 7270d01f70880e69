import type { Denial, EgressHost, EgressInjection, EgressPolicy, EgressRules } from './protocol.js';
import { matchesPattern } from './path-pattern.js';
import { canonicalPath, matchesPath, type Target } from './target.js';

/** What is asked: a request, or (without method and path) whether anything may go to a host at all. */
export interface Asked {
  target: Target;
  method?: string;
  /** With its query, as it was written. */
  path?: string;
}

export type Decision =
  | {
      isAllowed: true;
      rule: string | null;
      /** Only because the host is always open: see `EgressPolicy.open`. */ isOpenOnly: boolean;
    }
  | { isAllowed: false; denial: Denial; rule: string | null };

/** What of a policy decides. */
type DecidingPolicy = Pick<EgressPolicy, 'layers' | 'open'>;

type Patterned = EgressHost & { patterns?: readonly string[] | undefined };

interface Named {
  host: string;
  port?: number | undefined;
}

/** Of entries that name none. */
export const WEB_PORTS: readonly number[] = [80, 443];

/** Whether a request passes: each layer lets it, or the host is always open. */
export function decideEgress(policy: DecidingPolicy, asked: Asked): Decision {
  const layers = policy.layers.map((layer) => layerDecision(layer, asked));
  const denied = layers.find((decision) => !decision.isAllowed);
  if (denied === undefined) {
    return {
      isAllowed: true,
      rule: layers.find(({ rule }) => rule !== null)?.rule ?? null,
      isOpenOnly: false,
    };
  }
  const open = policy.open.filter((entry) => isTowards(entry, asked.target));
  if (open.length === 0) {
    return denied;
  }
  const decision = entriesDecision(open, asked);
  return decision.isAllowed ? { ...decision, isOpenOnly: true } : decision;
}

function layerDecision({ default: otherwise, allow, deny }: EgressRules, asked: Asked): Decision {
  const { target } = asked;
  const forbidding = deny.find(
    (entry) => matchesHost(entry, target.host) && (entry.port ?? target.port) === target.port,
  );
  if (forbidding) {
    return { isAllowed: false, denial: 'rule', rule: shownRule(forbidding) };
  }
  const entries = allow.filter((entry) => names(entry, target));
  if (entries.length > 0) {
    return entriesDecision(entries, asked);
  }
  if (target.isAddress) {
    return { isAllowed: false, denial: 'address', rule: null };
  }
  return otherwise === 'allow' && WEB_PORTS.includes(target.port)
    ? { isAllowed: true, rule: null, isOpenOnly: false }
    : { isAllowed: false, denial: 'rule', rule: null };
}

/** One of several entries for a host has to let a request pass. */
function entriesDecision(entries: readonly Patterned[], { method, path }: Asked): Decision {
  const byMethod = entries.filter(
    ({ methods }) => method === undefined || methods?.includes(method) !== false,
  );
  const passing = byMethod.find((entry) => passesPath(entry, path));
  if (passing) {
    return { isAllowed: true, rule: shownRule(passing), isOpenOnly: false };
  }
  const [nearest] = byMethod.length > 0 ? byMethod : entries;
  return {
    isAllowed: false,
    denial: byMethod.length > 0 ? 'path' : 'method',
    rule: nearest ? shownRule(nearest) : null,
  };
}

function passesPath({ paths, patterns = [] }: Patterned, path: string | undefined): boolean {
  return (
    path === undefined ||
    paths === undefined ||
    paths.some((rule) => matchesPath(rule, canonicalPath(path))) ||
    patterns.some((pattern) => matchesPattern(pattern, path))
  );
}

/** Credentials whose value goes towards this request. */
export function injectionsFor(policy: EgressPolicy, { target, method, path }: Asked): EgressInjection[] {
  return policy.injections.filter(({ hosts }) =>
    hosts.some(
      (entry) =>
        names(entry, target) &&
        (target.isTls || entry.http === true) &&
        (method === undefined || entry.methods?.includes(method) !== false) &&
        passesPath(entry, path),
    ),
  );
}

/**
 * Whether the tunnel's TLS has to be opened: where a credential goes there, the host is always open, or some layer has only entries
 * with methods or paths for it.
 */
export function opensTls(policy: EgressPolicy, target: Target): boolean {
  return (
    injectionsFor(policy, { target }).length > 0 ||
    policy.open.some((entry) => isTowards(entry, target)) ||
    policy.layers.some(({ allow }) => {
      const entries = allow.filter((entry) => names(entry, target));
      return (
        entries.length > 0 &&
        entries.every(({ methods, paths }) => methods !== undefined || paths !== undefined)
      );
    })
  );
}

/** Whether a request passes that its owner allows once: each layer that does not yield to that lets it. */
export function decideOnce(policy: DecidingPolicy, asked: Asked): Decision {
  return decideEgress(
    { ...policy, layers: policy.layers.filter(({ yieldsOnce }) => yieldsOnce !== true) },
    asked,
  );
}

/** What the owner allowed for one request of this host; without a port that is 80 and 443. */
export function allowedOnce({ once }: EgressPolicy, { host, port }: Target): string | null {
  const written = [
    `${host}:${port}`,
    `[${host}]:${port}`,
    ...(WEB_PORTS.includes(port) ? [host, `[${host}]`] : []),
  ];
  return once.find((entry) => written.includes(entry)) ?? null;
}

function isTowards(entry: EgressHost & { plain?: boolean | undefined }, target: Target): boolean {
  return names(entry, target) && (target.isTls || entry.plain === true);
}

/** Whether an entry is for a host at a port. */
export function names(entry: Named, { host, port }: Pick<Target, 'host' | 'port'>): boolean {
  return (
    matchesHost(entry, host) && (entry.port === undefined ? WEB_PORTS.includes(port) : entry.port === port)
  );
}

function matchesHost({ host: rule }: Named, host: string): boolean {
  return rule.startsWith('*.')
    ? host.length >= rule.length && host.endsWith(rule.slice(1)) && !/^[\d.]+$/.test(host)
    : rule.replace(/^\[(.*)\]$/, '$1') === host;
}

function shownRule({ host, port }: Named): string {
  return port === undefined ? host : `${host}:${port}`;
}
