import { Injectable } from '@nestjs/common';
import { WEB_PORTS, names } from '@slipway/egress-proxy/decision.js';
import type { EgressInjection, EgressPolicy, EgressRules } from '@slipway/egress-proxy/protocol.js';
import { EgressRulebook } from '../../config/egress-rulebook.js';
import type { EgressHostRule, EgressRuleSet } from '../../config/egress-rules.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { NO_HOSTS, SandboxEgress } from '../sandboxes/lifecycle/egress-access.js';
import type { Sandbox } from '../sandboxes/sandbox.entity.js';
import type { OpenHost } from './open-hosts.js';

type Place = EgressInjection['hosts'][number];
type Rules = Omit<EgressRules, 'yieldsOnce'> & { yieldsOnce?: boolean };
type Named = Pick<EgressHostRule, 'host' | 'port'>;
type RuledSandbox = Pick<Sandbox, 'userId' | 'specId' | 'egressRules' | 'egressSetup'>;

const HTTPS = 443;

/** Which rules hold for a sandbox at this moment. */
@Injectable()
export class SandboxLayers {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly rulebook: EgressRulebook,
    private readonly egress: SandboxEgress,
  ) {}

  /**
   * @param open hosts that are open in each layer which does not deny them, or says methods or paths for them
   * @param places of the sandbox's own credentials, which are all that is open of the hosts that are so because of them
   */
  async of(
    sandbox: RuledSandbox,
    open: readonly OpenHost[] = [],
    places: readonly Place[] = [],
  ): Promise<Pick<EgressPolicy, 'phase' | 'layers' | 'open'>> {
    const phase = sandbox.egressSetup === 'open' ? 'setup' : 'agent';
    const spec = this.specs.find(sandbox.specId);
    const firm = spec === null ? [NO_HOSTS] : this.rulebook.layersOf(spec);
    const own = await this.egress.ownLayers(sandbox);
    const inPhase = (rules: EgressRuleSet): Rules => (phase === 'setup' ? rules.setup : null) ?? rules;
    const all = [
      ...firm.map((rules) => inPhase(rules)),
      ...own.map((rules) => ({ ...inPhase(rules), yieldsOnce: true })),
    ];
    return { phase, ...layersWith(all, open, places) };
  }
}

/** Hosts of a credential are open where it goes; as a whole where it goes nowhere, or where some rules are about them. */
export function layersWith(
  rules: readonly Rules[],
  open: readonly OpenHost[],
  places: readonly Place[],
): Pick<EgressPolicy, 'layers' | 'open'> {
  const isFree = (entry: Named): boolean =>
    rules.every(
      ({ allow, deny }) =>
        !allow.filter(isNarrowing).some((rule) => meets(rule, entry)) &&
        !deny.some((rule) => denies(rule, entry)),
    );
  const wide = open
    .filter(
      (entry) => !entry.isOfCredential || !isFree(entry) || !places.some((place) => isSameHost(place, entry)),
    )
    .map(({ host, port }): EgressHostRule => ({ host, ...(port !== undefined && { port }) }));
  const narrow = places
    .filter(isFree)
    .map(({ http, ...place }) => ({ ...place, ...(http && { plain: true }) }));
  return {
    layers: rules.map(({ default: otherwise, allow, deny, yieldsOnce }) => ({
      default: otherwise,
      allow: withOpen(allow, wide),
      deny,
      ...(yieldsOnce && { yieldsOnce }),
    })),
    open: rules.length === 0 ? [] : narrow,
  };
}

function isSameHost(one: Named, { host, port }: Named): boolean {
  return one.port === port && names({ host, port: HTTPS }, { host: one.host, port: HTTPS });
}

function meets(rule: Named, { host, port }: Named): boolean {
  return (port === undefined ? WEB_PORTS : [port]).some((each) => names(rule, { host, port: each }));
}

/** Without a port it is for all. */
function denies(rule: Named, entry: Named): boolean {
  return meets({ ...rule, port: rule.port ?? entry.port }, entry);
}

function isNarrowing({ methods, paths }: EgressHostRule): boolean {
  return methods !== undefined || paths !== undefined;
}

/** Hosts that are always open among those that rules allow, at ports for which no rule says methods or paths. */
export function withOpen(
  allow: readonly EgressHostRule[],
  open: readonly EgressHostRule[],
): EgressHostRule[] {
  const narrowing = allow.filter(isNarrowing);
  const isLeft = (host: string, port: number): boolean =>
    !narrowing.some((entry) => names(entry, { host, port }));
  const left = open.flatMap((entry) => {
    const ports = entry.port === undefined ? WEB_PORTS : [entry.port];
    const wide = ports.filter((port) => isLeft(entry.host, port));
    return wide.length === ports.length ? [entry] : wide.map((port) => ({ ...entry, port }));
  });
  return [...allow, ...left];
}
