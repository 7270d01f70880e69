import { Injectable } from '@nestjs/common';
import { WEB_PORTS, names } from '@slipway/egress-proxy/decision.js';
import type { AllowedHost, EgressPhase, EgressRules } from '@slipway/egress-proxy/protocol.js';
import { EgressRulebook } from '../../config/egress-rulebook.js';
import { type EgressRuleSet, GIT_HOSTS } from '../../config/egress-rules.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { NO_HOSTS, SandboxRules } from '../sandboxes/lifecycle/sandbox-rules.js';
import type { Sandbox } from '../sandboxes/sandbox.entity.js';
import { type OpenedHosts, wholeHost } from './open-hosts.js';

type RuledSandbox = Pick<Sandbox, 'userId' | 'specId' | 'egressRules' | 'egressSetup'>;

/** Which rules hold for a sandbox at this moment. */
@Injectable()
export class SandboxLayers {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly rulebook: EgressRulebook,
    private readonly rules: SandboxRules,
  ) {}

  /** @param opened hosts that are open in each layer which does not deny them, or says methods or paths for them */
  async of(
    sandbox: RuledSandbox,
    { open, git }: OpenedHosts,
  ): Promise<{ phase: EgressPhase; layers: EgressRules[] }> {
    const phase = sandbox.egressSetup === 'open' ? 'setup' : 'agent';
    const toLayer = (rules: EgressRuleSet, yieldsOnce: boolean): EgressRules => {
      const { default: otherwise, allow, deny } = (phase === 'setup' ? rules.setup : null) ?? rules;
      const named = allow.flatMap((entry) => (entry.host === GIT_HOSTS.host ? git : [entry]));
      // Paths of its own would close the rest of a host that the default leaves open.
      const opened = otherwise === 'allow' ? open.map(wholeHost) : open;
      return { default: otherwise, allow: withOpen(named, opened), deny, ...(yieldsOnce && { yieldsOnce }) };
    };
    const spec = this.specs.find(sandbox.specId);
    const firm = spec === null ? [NO_HOSTS] : this.rulebook.layersOf(spec);
    const own = await this.rules.own(sandbox);
    return {
      phase,
      layers: [...firm.map((each) => toLayer(each, false)), ...own.map((each) => toLayer(each, true))],
    };
  }
}

/** Hosts that are always open among those that rules allow, at ports for which no rule says methods or paths. */
export function withOpen(allow: readonly AllowedHost[], open: readonly AllowedHost[]): AllowedHost[] {
  const narrowing = allow.filter(({ methods, paths }) => methods !== undefined || paths !== undefined);
  const isLeft = (host: string, port: number): boolean =>
    !narrowing.some((entry) => names(entry, { host, port }));
  const left = open.flatMap((entry) => {
    const ports = entry.port === undefined ? WEB_PORTS : [entry.port];
    const wide = ports.filter((port) => isLeft(entry.host, port));
    return wide.length === ports.length ? [entry] : wide.map((port) => ({ ...entry, port }));
  });
  return [...allow, ...left];
}
