import { IntegerVariable, PathVariable, SwitchVariable, UrlVariable } from './variables.js';

export class AgentConfig {
  @SwitchVariable('AGENT_EXPOSE_GIT_TOKENS', true)
  exposeGitTokens: boolean;

  /** Seconds that a language model may stay silent. */
  @IntegerVariable('LLM_TIMEOUT_SECONDS', {
    default: '120',
    minimum: 1,
    maximum: 3600,
    message: 'must be a whole number of seconds from 1 to 3600',
  })
  llmTimeoutSeconds: number;

  /** Above this the oldest part is summarised; null: 60 % of the model's context. */
  @IntegerVariable('AGENT_CONDENSER_TOKENS', {
    minimum: 1000,
    message: 'must be a whole number of tokens, at least 1000',
  })
  condenserTokens: number | null;

  @PathVariable('MODEL_PRICES_FILE')
  modelPricesFile: string | null;

  @PathVariable('ACP_AGENTS_FILE')
  acpAgentsFile: string | null;
  @PathVariable('SKILLS_DIR')
  skillsDir: string | null;

  @UrlVariable('TAVILY_API_URL', { default: 'https://api.tavily.com' })
  tavilyApiUrl: string;

  @IntegerVariable('MAX_CONVERSATIONS_PER_USER', {
    default: '10000',
    minimum: 1,
    maximum: 100_000_000,
    message: 'must be a whole number from 1 to 100000000',
  })
  maxConversations: number;
}
