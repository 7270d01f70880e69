import {
  egressHostSchema,
  egressInjectionSchema,
  type EgressPolicy,
} from '@slipway/egress-proxy/protocol.js';

/**
 * The policy without what a proxy would take for a mistake of the service, and refuse with all the rest: hosts that users
 * stored and that cannot be any, and credentials that would go nowhere.
 */
export function tellablePolicy(policy: EgressPolicy): EgressPolicy {
  const layers = policy.layers.map(({ allow, deny, ...layer }) => ({
    ...layer,
    allow: allow.filter(isHost),
    deny: deny.filter(isHost),
  }));
  const injections = policy.injections
    .map((injection) => ({ ...injection, hosts: injection.hosts.filter(isHost) }))
    .filter((injection) => egressInjectionSchema.safeParse(injection).success);
  return { ...policy, layers, injections };
}

function isHost(entry: unknown): boolean {
  return egressHostSchema.safeParse(entry).success;
}
