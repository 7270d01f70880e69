import { Injectable } from '@nestjs/common';
import { WEB_PORTS, names } from '@slipway/egress-proxy/decision.js';
import type {
  AllowedHost,
  EgressInjection,
  EgressPhase,
  EgressRules,
} from '@slipway/egress-proxy/protocol.js';
import { EgressRulebook } from '../../config/egress-rulebook.js';
import { type EgressRuleSet, GIT_HOSTS } from '@slipway/egress-rules/egress-rules.js';
import { OutsideCredentials } from '../app-conversations/outside-credentials/outside-credentials.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { NO_HOSTS, SandboxRules } from '../sandboxes/lifecycle/sandbox-rules.js';
import { isOutside, isRestricted, type Sandbox } from '../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { OpenHosts, ownPlace, wholeHost } from './open-hosts.js';

/** Which rules hold for a sandbox at this moment, with the hosts that are open by what is put in for it. */
@Injectable()
export class SandboxLayers {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly rulebook: EgressRulebook,
    private readonly rules: SandboxRules,
    private readonly sandboxes: SandboxRepository,
    private readonly openHosts: OpenHosts,
    private readonly credentials: OutsideCredentials,
  ) {}

  /** Null where it has gone meanwhile. @throws SecretDecryptionError */
  async of({ id, userId, egressMode }: Pick<Sandbox, 'id' | 'userId' | 'egressMode'>): Promise<{
    phase: EgressPhase;
    layers: EgressRules[];
    injections: EgressInjection[];
  } | null> {
    const [opened, { injections, agentPlaces }] = await Promise.all([
      // Without rules nothing has to be open.
      isRestricted(egressMode) ? this.openHosts.of({ id, userId, egressMode }) : { open: [], git: [] },
      isOutside(egressMode)
        ? this.credentials.injections({ sandboxId: id, userId })
        : { injections: [], agentPlaces: [] },
    ]);
    const open = [...opened.open, ...agentPlaces.map(ownPlace)];
    // What is above may take seconds, and a setup ends meanwhile.
    const sandbox = await this.sandboxes.find(id);
    if (sandbox === null) {
      return null;
    }
    const phase = sandbox.egressSetup === 'open' ? 'setup' : 'agent';
    const toLayer = (rules: EgressRuleSet, yieldsOnce: boolean): EgressRules => {
      const { default: otherwise, allow, deny } = (phase === 'setup' ? rules.setup : null) ?? rules;
      const named = allow.flatMap((entry) => (entry.host === GIT_HOSTS.host ? opened.git : [entry]));
      // Paths of its own would close the rest of a host that the default leaves open.
      const reached = otherwise === 'allow' ? open.map(wholeHost) : open;
      return { default: otherwise, allow: withOpen(named, reached), deny, ...(yieldsOnce && { yieldsOnce }) };
    };
    const spec = this.specs.find(sandbox.specId);
    const firm = spec === null ? [NO_HOSTS] : this.rulebook.layersOf(spec);
    const own = await this.rules.own(sandbox);
    return {
      phase,
      injections,
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
