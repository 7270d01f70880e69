import type { InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { TOKEN_VARIABLES } from '@slipway/git-providers/git-servers.js';
import { type AcpAgent, namesIn, OPEN_SETTINGS } from '../agent-request/acp-agents.js';
import type { AgentSettings } from '@slipway/settings/agent-settings.js';
import { below, hostPlaces, placeAt } from '@slipway/egress-rules/credential-places.js';

/** Variables from which known agents read a key: the one that says where it goes, and where it goes without that. */
const KEY_VARIABLES = new Map<string, { address: string | null; usual: string | null }>([
  ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'].map(
    (name) => [name, { address: 'ANTHROPIC_BASE_URL', usual: 'https://api.anthropic.com/v1' }] as const,
  ),
  ...['OPENAI_API_KEY', 'CODEX_API_KEY'].map(
    (name) => [name, { address: 'OPENAI_BASE_URL', usual: 'https://api.openai.com/v1' }] as const,
  ),
  [
    'GEMINI_API_KEY',
    { address: 'GOOGLE_GEMINI_BASE_URL', usual: 'https://generativelanguage.googleapis.com' },
  ],
  ['COPILOT_PROVIDER_API_KEY', { address: 'COPILOT_PROVIDER_BASE_URL', usual: null }],
  ['OPENROUTER_API_KEY', { address: null, usual: 'https://openrouter.ai/api/v1' }],
]);
const NO_KEYS = new Set<string>([...OPEN_SETTINGS, ...TOKEN_VARIABLES, 'search_api_key']);

/** A key that an entry gives its agent: a secret by its name (`llm_api_key` among them), or what stands in a variable itself. */
export interface AgentKey {
  name: string;
  /** The variable that has it itself. */
  literal: string | null;
  /** Where it goes; null: that is not known. None: to the sandbox's own loopback, where no proxy is on the way. */
  places: InjectionPlace[] | null;
}

/** Keys of the operator's entry, and where the agent sends each: as `hosts` says, as its variables say, or to the vendor. */
export function agentKeys(
  agent: AcpAgent,
  { llm_base_url: base }: Pick<AgentSettings, 'llm_base_url'>,
): AgentKey[] {
  const own = agent.secrets.filter((name) => KEY_VARIABLES.has(name) && !(name in agent.env));
  const variables = [...Object.entries(agent.env), ...own.map((name) => [name, `\${${name}}`] as const)];
  const keys = new Map<string, AgentKey>();
  for (const [variable, template] of variables) {
    const used = namesIn(template);
    const literal = used.length === 0 && KEY_VARIABLES.has(variable) ? template : null;
    for (const name of literal === null ? used.filter((each) => !NO_KEYS.has(each)) : [variable]) {
      const known = keys.get(name)?.places ?? null;
      const places = placesOf(agent, variable, base ?? '');
      keys.set(name, { name, literal, places: known && places ? [...known, ...places] : (known ?? places) });
    }
  }
  return [...keys.values()];
}

function placesOf(agent: AcpAgent, variable: string, base: string): InjectionPlace[] | null {
  if (agent.hosts.length > 0) {
    return hostPlaces(agent.hosts);
  }
  const address = addressOf(agent, variable, base);
  if (address === null || isLoopbackHost(address.hostname)) {
    return address && [];
  }
  const places = placeAt(address, [below(address.pathname)]);
  return places.length > 0 ? places : null;
}

function addressOf({ env, args }: AcpAgent, variable: string, base: string): URL | null {
  const { address: named = null, usual = null } = KEY_VARIABLES.get(variable) ?? {};
  const given = named === null ? undefined : env[named];
  const texts = [...Object.values(env), ...args];
  if (given !== undefined && !(namesIn(given).includes('llm_base_url') && base === '')) {
    return URL.parse(given.replaceAll('${llm_base_url}', () => base));
  }
  if (base !== '' && texts.some((text) => namesIn(text).includes('llm_base_url'))) {
    return URL.parse(base);
  }
  // Of a configuration in a form that only the agent knows.
  const isElsewhere = texts.some((text) => text.includes('://'));
  return isElsewhere || usual === null ? null : URL.parse(usual);
}

/** Which keys of an agent are in its sandbox in clear, though others stay outside. */
export function agentNotes({ name, secrets, credentials }: AcpAgent, keys: readonly AgentKey[]): string[] {
  const lost =
    credentials === 'inside' ? secrets : keys.flatMap((key) => (key.places === null ? [key.name] : []));
  const why =
    credentials === 'inside'
      ? "the operator's list of agents says that its program uses no proxy (credentials: inside)"
      : "the operator's list of agents does not say to which host that goes (hosts)";
  return lost.length === 0 ? [] : [`acp:${name} has ${lost.join(', ')} in its sandbox, in clear: ${why}.`];
}
