import { parseJson } from '@slipway/common/json-access.js';
import type { SandboxBackendKind } from '@slipway/sandboxes/sandbox-backend.js';
import { parseReadable, type ReadablePattern } from './readable-repositories.js';
import {
  ChoiceVariable,
  commaList,
  For,
  FromVariable,
  IntegerVariable,
  PathVariable,
  Satisfies,
} from './variables.js';

/** Backends that can give sandboxes no way out but the egress proxy. */
export const BACKENDS_WITH_EGRESS: readonly SandboxBackendKind[] = ['process', 'docker'];

/** What sandboxes may reach. */
export class EgressConfig {
  @For('process', 'docker')
  @FromVariable(
    'SANDBOX_EGRESS',
    'What all sandboxes may reach, by name; a specification (`egress`) can only narrow it. They then reach everything through a proxy of the service, and hosts of the model, of git and of tool servers stay open. By default nothing is restricted.',
    {
      form: 'JSON, such as `{"default":"deny","allow":["common","*.example.com"],"deny":[]}`',
      convert: (text) => parseJson(text) ?? text,
    },
  )
  rules: unknown;

  @For('process', 'docker')
  @PathVariable(
    'SANDBOX_EGRESS_PRESETS',
    'YAML or JSON with lists of hosts that rules name, in place of the built-in ones: `{"version": 1, "presets": {"npm": ["registry.npmjs.org"]}}`.',
  )
  presetsFile: string | null;

  @For('process', 'docker')
  @IntegerVariable(
    'SANDBOX_EGRESS_PORT',
    'Port at which sandboxes find the proxy where there are rules or credentials are outside: of the loopback of this machine, for containers of their own. Sandboxes that run know it, so keep it.',
    { default: '3180', minimum: 1, maximum: 65_535 },
  )
  port: number;

  @For('process', 'docker')
  @ChoiceVariable(
    'SANDBOX_CREDENTIALS',
    "Whether the model's key, git tokens, keys of tool servers and secrets with hosts are in sandboxes, or placeholders of them, for which the proxy puts the values in on their way to the hosts that they belong to.",
    ['inside', 'outside'],
    { default: 'inside' },
  )
  credentials: 'inside' | 'outside';

  @For('process')
  @FromVariable(
    'SANDBOX_REPOSITORIES_READ',
    'Which other repositories sandboxes with credentials outside may read at most (`repositories_read` of starts and settings), such as `github:octo/*,gitlab:group/lib`. By default all that the token of the user may read.',
    { form: 'a comma list of repositories', convert: parsePatterns },
    Satisfies(
      (list) => Array.isArray(list),
      'must be a comma list of github:owner/name, github:owner/* or gitlab:group/*',
    ),
  )
  repositoriesRead: readonly ReadablePattern[] | null;
}

/** Returns the text where one is no pattern, for the rule to refuse. */
function parsePatterns(text: string): ReadablePattern[] | string {
  const patterns = commaList(text).map(parseReadable);
  return patterns.every((each) => each !== null) ? patterns : text;
}
