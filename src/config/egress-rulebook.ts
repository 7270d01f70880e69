import { readFile } from 'node:fs/promises';
import { Module } from '@nestjs/common';
import { AppConfig } from './app-config.js';
import { parseConfigured, readConfigured } from '@slipway/common/errors/config.error.js';
import type { EgressConfig } from './egress-config.js';
import {
  BUILT_IN_PRESETS,
  type EgressPresets,
  egressPresetsSchema,
  type EgressRuleSet,
  egressSchema,
  GIT_HOSTS,
} from '@slipway/egress-rules/egress-rules.js';
import { type ReadablePattern, readableProblem } from '@slipway/egress-rules/readable-repositories.js';

/** Where rules are wrong, and why. */
interface RuleProblem {
  path: string[];
  message: string;
}

/** The operator's rules about what sandboxes may reach, and the lists of hosts that all rules may name. */
export class EgressRulebook {
  constructor(
    readonly presets: EgressPresets,
    private readonly floor: EgressRuleSet | null,
    private readonly readable: readonly ReadablePattern[] | null = null,
  ) {}

  /** Why repositories may not be read that a user names; null: they may. */
  readableProblem(list: readonly string[]): string | null {
    return readableProblem(list, this.readable);
  }

  /** Returns the layers, each of which must let a request pass; if there are none, the operator restricts nothing. */
  layersOf({ egress }: { egress: EgressRuleSet | null }): readonly EgressRuleSet[] {
    return [this.floor, egress].filter((layer) => layer !== null);
  }

  /** Reads rules as users write them. */
  read(written: unknown): { rules: EgressRuleSet | null; problems: RuleProblem[] } {
    const { data: rules = null, error } = egressSchema(this.presets).safeParse(written);
    const issues = error?.issues ?? [];
    const problems = issues.map(({ path, message }) => ({ path: path.map(String), message }));
    return { rules, problems };
  }
}

/** @throws ConfigError with the variable, the place and what is wrong, in one line */
export async function loadEgressRulebook({
  rules,
  presetsFile: file,
  repositoriesRead,
}: EgressConfig): Promise<EgressRulebook> {
  const presets =
    file === null
      ? BUILT_IN_PRESETS
      : {
          git: [GIT_HOSTS],
          ...(await readConfigured('SANDBOX_EGRESS_PRESETS', file, async () =>
            parseConfigured(await readFile(file, 'utf8'), egressPresetsSchema),
          )),
        };
  if (rules === null) {
    return new EgressRulebook(presets, null, repositoriesRead);
  }
  const floor = await readConfigured('SANDBOX_EGRESS', 'its rules', async () =>
    parseConfigured(JSON.stringify(rules), egressSchema(presets)),
  );
  return new EgressRulebook(presets, floor, repositoriesRead);
}

@Module({
  providers: [
    {
      provide: EgressRulebook,
      inject: [AppConfig],
      useFactory: async ({ egress }: AppConfig): Promise<EgressRulebook> => loadEgressRulebook(egress),
    },
  ],
  exports: [EgressRulebook],
})
export class EgressRulebookModule {}
