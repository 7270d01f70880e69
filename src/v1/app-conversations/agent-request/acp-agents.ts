import { readFile } from 'node:fs/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { z } from 'zod';
import type { AcpAgentSpec } from '@slipway/agent-protocol/conversation-api.js';
import { isJsonObject } from '@slipway/common/json-access.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { AppConfig } from '../../../config/app-config.js';
import { parseConfigured, readConfigured } from '@slipway/common/errors/config.error.js';
import { parseSecretHost } from '@slipway/egress-rules/secret-injection.js';
import { isRemote, type ToolServer } from '@slipway/tool-servers/tool-servers.js';
import type { AgentSecret } from '../../../settings/secrets/agent-secrets.reader.js';
import type { RemoteConversation } from '@slipway/agent-client/agent-server.client.js';
import { type AgentInputs, mcpServerEntries } from './agent-inputs.reader.js';
import { type AgentSettings, OWN_AGENT } from '@slipway/settings/agent-settings.js';

/** Groups of secrets that the list may name: tokens for git servers, keys of tool servers. */
const SECRET_GROUPS = { gitTokens: 'git_tokens', mcpKeys: 'mcp_keys' } as const;

const PLACEHOLDER = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** What a value of the list stands for: settings and secrets by their names. */
export function namesIn(template: string): string[] {
  return [...template.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}

/** Settings that are no secret: any agent may see them. */
export const OPEN_SETTINGS = ['llm_model', 'llm_base_url'] as const;

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable');

const agentSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9._-]{0,62}$/, 'must be 1 to 63 lower-case letters, digits or . _ -'),
    command: z.string().min(1),
    args: z.array(z.string()).default([]),
    /** Values may have placeholders. */
    env: namedValues(variable, z.string()).default({}),
    secrets: z.array(variable).default([]),
    /** Null: the agent chooses. May have placeholders. */
    model: z.string().min(1).nullable().default(null),
    mode: z.string().min(1).nullable().default(null),
    auth_method: z.string().min(1).nullable().default(null),
    /** Instructions for users. */
    install: z.string().min(1).nullable().default(null),
    /** Where its keys go, as secrets name theirs, where its variables do not say it. */
    hosts: z
      .array(z.string().refine((text) => parseSecretHost(text) !== null, 'must be NAME or NAME:PORT'))
      .default([]),
    /** That its program uses no proxy, so that its keys are in the sandbox wherever others stay. */
    credentials: z.literal('inside').nullable().default(null),
  })
  .superRefine(({ env, secrets, model }, context) => {
    const groups = new Set<string>(Object.values(SECRET_GROUPS));
    const known = new Set<string>([...OPEN_SETTINGS, ...secrets.filter((name) => !groups.has(name))]);
    const values = [...Object.entries(env), ...(model === null ? [] : [['model', model] as const])];
    for (const [name, value] of values) {
      for (const used of namesIn(value)) {
        if (!known.has(used)) {
          context.addIssue({
            code: 'custom',
            path: name === 'model' ? ['model'] : ['env', name],
            message: `\${${used}} is neither ${OPEN_SETTINGS.join(' nor ')}, nor listed in secrets`,
          });
        }
      }
    }
  });

export type AcpAgent = z.infer<typeof agentSchema>;

const agentsSchema = z.array(agentSchema).superRefine((agents, context) => {
  agents.forEach(({ name }, index) => {
    if (agents.findIndex((agent) => agent.name === name) !== index) {
      context.addIssue({ code: 'custom', path: [index, 'name'], message: `${name} stands there twice` });
    }
  });
});

/** Reads `ACP_AGENTS_FILE`, a list. @throws ConfigError */
export async function readAcpAgents(file: string): Promise<Map<string, AcpAgent>> {
  const agents = await readConfigured('ACP_AGENTS_FILE', file, async () =>
    parseConfigured(await readFile(file, 'utf8'), agentsSchema),
  );
  return new Map(agents.map((agent) => [agent.name, agent]));
}

const PREFIX = 'acp:';

/** Whether a name is one of the operator's list, or was. */
export function isAcpName(name: string | null | undefined): name is string {
  return name?.startsWith(PREFIX) === true;
}

/** The ACP agents that users may choose, from the operator's list. */
@Injectable()
export class AcpAgents implements OnModuleInit {
  private agents = new Map<string, AcpAgent>();

  constructor(private readonly config: AppConfig) {}

  async onModuleInit(): Promise<void> {
    const { acpAgentsFile: file } = this.config.agent;
    if (file !== null) {
      this.agents = await readAcpAgents(file);
    }
  }

  get names(): string[] {
    return [...this.agents.keys()].map((name) => `${PREFIX}${name}`);
  }

  /** Whether settings and requests may name this agent, our own included. */
  has(name: string): boolean {
    return name === OWN_AGENT || this.find(name) !== null;
  }

  /** Returns null for our own agent, which a null name means too, and for unknown names. */
  find(name: string | null): AcpAgent | null {
    return isAcpName(name) ? (this.agents.get(name.slice(PREFIX.length)) ?? null) : null;
  }
}

/** The prompt lists an agent's secrets with their descriptions. */
const OF_THE_AGENT = 'of this agent itself, not for tasks';

export interface StartedAcpAgent {
  spec: AcpAgentSpec;
  /** Variables of its environment. */
  secrets: ReadonlyMap<string, AgentSecret>;
  /** Tells the user which variables have no value. */
  notes: string[];
}

/** What the operator's list gives an agent; nothing once it has been taken off (null). */
export function grantedInputs(
  agent: Pick<AcpAgent, 'secrets'> | null,
  { settings, mcpConfig, secrets, credentials, ...rest }: AgentInputs,
): AgentInputs {
  const named = new Set(agent?.secrets);
  const isNamed = (name: string): boolean => named.has(name);
  return {
    ...rest,
    settings: {
      ...settings,
      search_api_key: isNamed('search_api_key') ? settings.search_api_key : null,
    },
    mcpConfig: mcpConfig === null || isNamed(SECRET_GROUPS.mcpKeys) ? mcpConfig : mcpConfig.filter(isOpen),
    secrets: new Map([...secrets].filter(([name]) => isNamed(name))),
    credentials: isNamed(SECRET_GROUPS.gitTokens) ? credentials : [],
  };
}

/** Secrets and tool servers that the operator withholds from the agent. */
export function withheldNotes(
  { name, secrets }: AcpAgent,
  own: ReadonlyMap<string, string>,
  { stored, mcpConfig }: { stored: AgentInputs; mcpConfig: readonly ToolServer[] | null },
): string[] {
  const withheld = [...own.keys()].filter((secret) => !secrets.includes(secret));
  const given = mcpServerEntries(mcpConfig);
  const servers = Object.keys(mcpServerEntries(stored.mcpConfig)).filter((server) => !(server in given));
  return [
    ...(withheld.length === 0
      ? []
      : [`acp:${name} is not given ${withheld.join(', ')}: the operator's list of agents does not name it.`]),
    ...(servers.length === 0
      ? []
      : [
          `acp:${name} is not given the tool servers ${servers.join(', ')}, which have keys: the operator's list of agents does not name ${SECRET_GROUPS.mcpKeys}.`,
        ]),
  ];
}

/** Whether it needs no key. */
function isOpen(server: ToolServer): boolean {
  if (!isRemote(server)) {
    return server.env.size === 0;
  }
  const { url, apiKey, details } = server;
  const { headers } = details;
  const hasHeaders = isJsonObject(headers) && Object.keys(headers).length > 0;
  const { search, username, password } = new URL(url);
  return apiKey === null && !hasHeaders && [search, username, password].every((part) => part === '');
}

type KnownSettings = Pick<AgentSettings, 'llm_model' | 'llm_base_url' | 'llm_api_key' | 'search_api_key'>;

/**
 * Fills in the operator's entry. A variable with a secret becomes a secret, so that it is masked and never stored; a
 * variable whose placeholder has no value is left out, and so are secrets that the entry does not name.
 */
export function toStartedAcpAgent(
  agent: AcpAgent,
  settings: KnownSettings,
  secrets: ReadonlyMap<string, AgentSecret>,
  model: string | null,
): StartedAcpAgent {
  const named = new Set(agent.secrets);
  const open: Record<string, string | null> = {
    llm_model: settings.llm_model,
    llm_base_url: settings.llm_base_url,
  };
  const keys: Record<string, string | null> = {
    llm_api_key: settings.llm_api_key,
    search_api_key: settings.search_api_key,
  };
  const valueOf = (name: string): string | null => {
    const found = named.has(name) ? (secrets.get(name)?.value ?? keys[name]) : null;
    return (Object.hasOwn(open, name) ? open[name] : found) ?? null;
  };
  const shown: Record<string, string> = {};
  const hidden = new Map([...secrets].filter(([name]) => named.has(name)));
  const missing: string[] = [];
  for (const [name, template] of Object.entries(agent.env)) {
    const used = namesIn(template);
    if (used.some((placeholder) => !valueOf(placeholder))) {
      missing.push(name);
    } else if (used.some((placeholder) => !Object.hasOwn(open, placeholder))) {
      hidden.set(name, { value: fill(template, valueOf), description: OF_THE_AGENT });
    } else {
      shown[name] = fill(template, valueOf);
    }
  }
  const chosen = model ?? (agent.model === null ? null : fill(agent.model, valueOf));
  return {
    spec: {
      acp_command: [agent.command, ...agent.args],
      acp_env: shown,
      acp_model: chosen === '' ? null : chosen,
      acp_session_mode: agent.mode,
      acp_auth_method: agent.auth_method,
    },
    secrets: hidden,
    notes:
      missing.length === 0
        ? []
        : [`acp:${agent.name} starts without ${missing.join(', ')}: your settings have no value for it.`],
  };
}

function fill(template: string, valueOf: (name: string) => string | null): string {
  return template.replaceAll(PLACEHOLDER, (_, name: string) => valueOf(name) ?? '');
}

/** What an agent of the list cannot do for this user, a sentence each. */
export function acpLimitations(
  abilities: NonNullable<RemoteConversation['abilities']>,
  { hasBudget, remoteServers }: { hasBudget: boolean; remoteServers: readonly ('http' | 'sse')[] },
): string[] {
  const lost = remoteServers.filter((kind) => !(kind === 'http' ? abilities.mcpHttp : abilities.mcpSse));
  return [
    ...(abilities.loadSession
      ? []
      : [
          'The agent cannot load earlier sessions: after a pause of its sandbox it is told what was said and done before, and remembers no more.',
        ]),
    ...(abilities.image ? [] : ['The agent cannot read images.']),
    ...[...new Set(lost)].map(
      (kind) => `The agent connects to no tool server over ${kind}: yours are left out.`,
    ),
    ...(hasBudget
      ? [
          'max_budget_per_task is enforced as far as the agent reports what it costs, or the egress proxy sees its calls.',
        ]
      : []),
  ];
}
