import { readFile } from 'node:fs/promises';
import { parseConfigured, readConfigured } from '../../config/config.error.js';
import {
  BUILT_IN_PRESETS,
  type EgressPresets,
  egressPresetsSchema,
  type EgressRuleSet,
  egressSchema,
} from '../../config/egress-rules.js';
import type { EgressConfig } from '../../config/egress-config.js';
import type { SandboxSpec } from './sandbox-specs.js';

/** The operator's rules about what sandboxes may reach. */
export class EgressRulebook {
  constructor(
    readonly presets: EgressPresets,
    private readonly floor: EgressRuleSet | null,
  ) {}

  /** Returns the layers, each of which must let a request pass; if there are none, nothing is restricted. */
  layersOf({ egress }: Pick<SandboxSpec, 'egress'>): readonly EgressRuleSet[] {
    return [this.floor, egress].filter((layer) => layer !== null);
  }
}

/** @throws ConfigError with the variable, the place and what is wrong, in one line */
export async function loadEgressRulebook({
  rules,
  presetsFile: file,
}: EgressConfig): Promise<EgressRulebook> {
  const presets =
    file === null
      ? BUILT_IN_PRESETS
      : await readConfigured('SANDBOX_EGRESS_PRESETS', file, async () =>
          parseConfigured(await readFile(file, 'utf8'), egressPresetsSchema),
        );
  if (rules === null) {
    return new EgressRulebook(presets, null);
  }
  const floor = await readConfigured('SANDBOX_EGRESS', 'its rules', async () =>
    parseConfigured(JSON.stringify(rules), egressSchema(presets)),
  );
  return new EgressRulebook(presets, floor);
}
