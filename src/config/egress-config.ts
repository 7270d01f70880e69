import { parseJson } from '@slipway/common/json-access.js';
import { parseReadable, type ReadablePattern } from '@slipway/egress-rules/readable-repositories.js';
import {
  ChoiceVariable,
  commaList,
  For,
  FromVariable,
  IntegerVariable,
  MatchingVariable,
  PathVariable,
  Satisfies,
  SwitchVariable,
} from '@slipway/configuration/variables.js';

/** As long as a random key of 128 bits in hexadecimal, at least. */
const PROXY_KEY = /^[\w+/=.-]{32,256}$/;

/** What sandboxes may reach. */
export class EgressConfig {
  @FromVariable(
    'SANDBOX_EGRESS',
    'What all sandboxes may reach, by name; a specification (`egress`) can only narrow it. They then reach everything through a proxy of the service, and what agents cannot do without (models, git, tool servers) stays open. By default nothing is restricted.',
    {
      form: 'JSON, such as `{"default":"deny","allow":["common","*.example.com"],"deny":[]}`',
      convert: (text) => parseJson(text) ?? text,
    },
  )
  rules: unknown;

  @PathVariable(
    'SANDBOX_EGRESS_PRESETS',
    'YAML or JSON with lists of hosts that rules name, in place of the built-in ones: `{"version": 1, "presets": {"npm": ["registry.npmjs.org"]}}`.',
  )
  presetsFile: string | null;

  @IntegerVariable(
    'SANDBOX_EGRESS_PORT',
    "Port at which sandboxes find the proxy where there are rules or credentials are outside: of the loopback of this machine, for containers of their own, for pods of the proxy's Service. Sandboxes that run know it, so keep it. By default 3180, for processes one between 20000 and 32767 that follows from `DATA_DIR`.",
    { minimum: 1, maximum: 65_535 },
  )
  port: number;

  @For('kubernetes')
  @MatchingVariable(
    'SANDBOX_EGRESS_HOST',
    'Where pods find the proxy: a name, which the service resolves when a sandbox starts, or an address. By default `slipway-egress.<namespace of the sandboxes>.svc`.',
    /^[A-Za-z0-9.:-]{1,253}$/,
    'must be a host name or an IP address, without scheme and port',
  )
  host: string | null;

  @For('kubernetes')
  @FromVariable(
    'EGRESS_PROXY_KEY',
    'What the service and the pods of its egress proxy know each other by. Two, by a comma, while one replaces the other: the service takes both, the proxy shows the first.',
    { form: 'a key, or two', convert: (text) => text.split(',').map((key) => key.trim()), isSecret: true },
    Satisfies(
      (keys) => Array.isArray(keys) && keys.length <= 2 && keys.every((key) => PROXY_KEY.test(String(key))),
      'must be one or two keys of 32 to 256 letters, digits or - _ + / = . each; make one with: openssl rand -hex 32',
    ),
  )
  proxyKeys: string[] | null;

  @ChoiceVariable(
    'SANDBOX_CREDENTIALS',
    "Whether the model's key, git tokens, keys of tool servers and secrets with hosts are in sandboxes, or placeholders of them, for which the proxy puts the values in on their way to the hosts that they belong to. By default `outside` where that can be kept; the log of a start says whether, and what is missing.",
    ['inside', 'outside'],
  )
  credentials: 'inside' | 'outside' | null;

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

  @SwitchVariable(
    'SANDBOX_GIT_GRAPHQL',
    'Whether git tokens that are outside of sandboxes go to the GraphQL API of their hosts, too. A request there names its repository in a body, so agents may then do all that the token may, in any repository.',
    false,
  )
  gitGraphql: boolean;
}

/** Returns the text where one is no pattern, for the rule to refuse. */
function parsePatterns(text: string): ReadablePattern[] | string {
  const patterns = commaList(text).map(parseReadable);
  return patterns.every((each) => each !== null) ? patterns : text;
}
