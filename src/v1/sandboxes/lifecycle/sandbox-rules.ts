import { Injectable } from '@nestjs/common';
import { EgressRulebook } from '../../../config/egress-rulebook.js';
import type { EgressRuleSet } from '@slipway/egress-rules/egress-rules.js';
import { SettingsRepository } from '../../../settings/settings.repository.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import type { OwnRules, Sandbox } from '../sandbox.entity.js';

/** Of a specification, or of rules, that cannot be read any more. */
export const NO_HOSTS: EgressRuleSet = { default: 'deny', allow: [], deny: [] };

/** Rules as they were written in settings, the user's and the organization's, and in a start; those that name a list that is gone let nothing pass. */
export function ownRules(
  written: Readonly<Record<OwnRules['from'], object | null>>,
  rulebook: EgressRulebook,
): OwnRules[] {
  return (['organization', 'settings', 'start'] as const).flatMap((from) => {
    const given = written[from];
    return given === null ? [] : [{ from, rules: rulebook.read(given).rules ?? NO_HOSTS }];
  });
}

const ofSettings = ({ from }: OwnRules): boolean => from !== 'start';

export type RuledSandbox = Pick<Sandbox, 'egressRules'>;

/** The rules of the operator, of a specification and of a sandbox's own that hold together. */
@Injectable()
export class SandboxRules {
  constructor(
    private readonly rulebook: EgressRulebook,
    private readonly settings: SettingsRepository,
  ) {}

  /** Those that it was made with. */
  of(spec: SandboxSpec, sandbox: RuledSandbox | null): EgressRuleSet[] {
    const own = sandbox?.egressRules ?? [];
    return [...this.rulebook.layersOf(spec), ...own.map(({ rules }) => rules)];
  }

  /** Those that it has besides the operator's, as they are at this moment. */
  async own({ userId, egressRules }: Pick<Sandbox, 'userId' | 'egressRules'>): Promise<EgressRuleSet[]> {
    const written = egressRules?.some(ofSettings) ? (await this.settings.effective(userId)).egress : null;
    return (egressRules ?? []).map(({ from, rules }) => {
      const current = from === 'start' ? null : (written?.[from] ?? null);
      return current === null ? rules : (this.rulebook.read(current).rules ?? NO_HOSTS);
    });
  }

  /** Whether requests have to be seen for them to be kept; those of settings may say so later. */
  opensTls(spec: SandboxSpec, sandbox: RuledSandbox): boolean {
    const entries = this.of(spec, sandbox).flatMap(({ allow, setup }) => [...allow, ...(setup?.allow ?? [])]);
    return (
      sandbox.egressRules?.some(ofSettings) === true ||
      entries.some(({ methods, paths }) => methods !== undefined || paths !== undefined)
    );
  }
}
