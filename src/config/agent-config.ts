import { IntegerVariable, PathVariable, SwitchVariable, UrlVariable } from './variables.js';

/** What agents get and may do. */
export class AgentConfig {
  /** Whether the tools of agents get the user's git tokens, as variables and through git's credential helper. */
  @SwitchVariable('AGENT_EXPOSE_GIT_TOKENS', true)
  exposeGitTokens: boolean;

  /** How long a language model may stay silent, seconds. */
  @IntegerVariable('LLM_TIMEOUT_SECONDS', {
    default: '120',
    minimum: 1,
    maximum: 3600,
    message: 'must be a whole number of seconds from 1 to 3600',
  })
  llmTimeoutSeconds: number;

  /** Above how many tokens the oldest part of a conversation is summarised; null: 60 % of the model's context. */
  @IntegerVariable('AGENT_CONDENSER_TOKENS', {
    minimum: 1000,
    message: 'must be a whole number of tokens, at least 1000',
  })
  condenserTokens: number | null;

  /** Absolute path of the operator's list of model prices. */
  @PathVariable('MODEL_PRICES_FILE')
  modelPricesFile: string | null;

  /** Absolute path of the operator's list of agents that speak the Agent Client Protocol. */
  @PathVariable('ACP_AGENTS_FILE')
  acpAgentsFile: string | null;
  /** Absolute path of the folder with the operator's skills for all agents. */
  @PathVariable('SKILLS_DIR')
  skillsDir: string | null;

  /** Base address of Tavily's search API. */
  @UrlVariable('TAVILY_API_URL', { default: 'https://api.tavily.com' })
  tavilyApiUrl: string;

  /** Conversations that one user may have stored. */
  @IntegerVariable('MAX_CONVERSATIONS_PER_USER', {
    default: '10000',
    minimum: 1,
    maximum: 100_000_000,
    message: 'must be a whole number from 1 to 100000000',
  })
  maxConversations: number;
}
