import { Injectable } from '@nestjs/common';
import { type AcpAgent, AcpAgents } from '../agent-request/acp-agents.js';
import { type AgentConfiguration, AgentInputsReader } from '../agent-request/agent-inputs.reader.js';
import { AgentSecretsReader, type SecretShown } from '../../../settings/secrets/agent-secrets.reader.js';
import { type AgentKey, agentKeys } from './agent-keys.js';

/** In clear: must never get into a response, a row or a log. */
export interface FoundAgentKey extends AgentKey {
  value: string;
}

/** A secret with hosts goes there alone, also where another setting names it. */
export const withoutHosts: SecretShown = async ({ value, injection }) => (injection === null ? value : '');

/** Keys of the operator's agents as their users have them now. */
@Injectable()
export class AgentKeysReader {
  constructor(
    private readonly agents: AcpAgents,
    private readonly inputs: AgentInputsReader,
    private readonly secrets: AgentSecretsReader,
  ) {}

  /** Null for our own agent, and for one that has been taken off the list. */
  find(agent: string | null | undefined): AcpAgent | null {
    return this.agents.find(agent ?? null);
  }

  /** Whether its program uses no proxy. */
  isInside(agent: string | null | undefined): boolean {
    return this.find(agent)?.credentials === 'inside';
  }

  /** @throws SecretDecryptionError */
  async read(userId: string, agent: AcpAgent, configuration: AgentConfiguration): Promise<FoundAgentKey[]> {
    const { settings } = this.inputs.withDefaults(configuration, { model: null, isOurs: false });
    const keys = agentKeys(agent, settings);
    const named = new Set(keys.map(({ name }) => name));
    const secrets = await this.secrets.forUser(userId, [], (name) => named.has(name), withoutHosts);
    return keys.flatMap((key) => {
      const { name, literal } = key;
      const value =
        literal ?? secrets.get(name)?.value ?? (name === 'llm_api_key' ? settings.llm_api_key : null);
      return value ? [{ ...key, value }] : [];
    });
  }
}
