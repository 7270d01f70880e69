import type {
  AllowedHost,
  Denial,
  EgressHost,
  EgressInjection,
  EgressPolicy,
  EgressRules,
} from './protocol.js';
import { matchesPattern } from './path-pattern.js';
import { canonicalPath, matchesPath, type Target } from './target.js';

/** What is asked: a request, or (without method and path) whether anything may go to a host at all. */
export interface Asked {
  target: Target;
  method?: string;
  /** With its query, as it was written. */
  path?: string;
  /** It is TLS that is passed through, whose requests are not seen. */
  isUnread?: boolean;
}

export type Decision =
  | {
      isAllowed: true;
      rule: string | null;
      /** With a credential of the sandbox or none: see `EgressRules.allow`. */
      isOwnOnly: boolean;
    }
  | { isAllowed: false; denial: Denial; rule: string | null };

/** What of a policy decides. */
type DecidingPolicy = Pick<EgressPolicy, 'layers'>;

interface Named {
  host: string;
  port?: number | undefined;
}

/** Of entries that name none. */
export const WEB_PORTS: readonly number[] = [80, 443];

/** Whether a request passes: each layer lets it. */
export function decideEgress(policy: DecidingPolicy, asked: Asked): Decision {
  const layers = policy.layers.map((layer) => layerDecision(layer, asked));
  return (
    layers.find((decision) => !decision.isAllowed) ?? {
      isAllowed: true,
      rule: layers.find(({ rule }) => rule !== null)?.rule ?? null,
      isOwnOnly: layers.some((decision) => decision.isAllowed && decision.isOwnOnly),
    }
  );
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
    ? { isAllowed: true, rule: null, isOwnOnly: false }
    : { isAllowed: false, denial: 'rule', rule: null };
}

/** One of several entries for a host has to let a request pass. */
function entriesDecision(entries: readonly AllowedHost[], { method, path, isUnread }: Asked): Decision {
  const byMethod = entries.filter(
    (entry) =>
      (method === undefined || entry.methods?.includes(method) !== false) &&
      !(isUnread === true && looksInside(entry)),
  );
  const passing = byMethod.filter((entry) => passesPath(entry, path));
  const widest = passing.find(({ isOwn }) => isOwn !== true) ?? passing[0];
  if (widest) {
    return { isAllowed: true, rule: shownRule(widest), isOwnOnly: widest.isOwn === true };
  }
  const [nearest] = byMethod.length > 0 ? byMethod : entries;
  return {
    isAllowed: false,
    denial: byMethod.length > 0 ? 'path' : 'method',
    rule: nearest ? shownRule(nearest) : null,
  };
}

function passesPath({ paths, patterns }: EgressHost, path: string | undefined): boolean {
  return (
    path === undefined ||
    (paths ?? patterns) === undefined ||
    paths?.some((rule) => matchesPath(rule, canonicalPath(path))) === true ||
    patterns?.some((pattern) => matchesPattern(pattern, path)) === true
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

/** Whether the tunnel's TLS has to be opened: where a credential goes there, or some layer has only entries that look into it. */
export function opensTls(policy: EgressPolicy, target: Target): boolean {
  return (
    injectionsFor(policy, { target }).length > 0 ||
    policy.layers.some(({ allow }) => {
      const entries = allow.filter((entry) => names(entry, target));
      return entries.length > 0 && entries.every(looksInside);
    })
  );
}

function looksInside({ isOwn, methods, paths, patterns }: AllowedHost): boolean {
  return isOwn === true || (methods ?? paths ?? patterns) !== undefined;
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
