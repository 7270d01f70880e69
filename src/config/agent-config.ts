import { IntegerVariable, PathVariable, SwitchVariable, UrlVariable } from './variables.js';

export class AgentConfig {
  @SwitchVariable(
    'AGENT_EXPOSE_GIT_TOKENS',
    "Whether the tools of agents get the user's git tokens. Without them only the agent server itself clones, fetches and pushes.",
    true,
  )
  exposeGitTokens: boolean;

  @IntegerVariable(
    'LLM_TIMEOUT_SECONDS',
    'How long a language model may stay silent before a request to it fails.',
    { default: '120', minimum: 1, maximum: 3600, unit: 'seconds' },
  )
  llmTimeoutSeconds: number;

  @IntegerVariable(
    'AGENT_CONDENSER_TOKENS',
    "Above this the oldest part of a conversation is summarised. By default 60 % of the model's context.",
    { minimum: 1000, unit: 'tokens' },
  )
  condenserTokens: number | null;

  @PathVariable(
    'MODEL_PRICES_FILE',
    'YAML or JSON with prices that the built-in catalogue lacks or has wrong: `model: { input: 2.5, output: 10, cache_read: 0.25, cache_write: 3 }`, in USD per million tokens; the last two may be missing.',
  )
  modelPricesFile: string | null;

  @PathVariable('ACP_AGENTS_FILE', 'YAML or JSON list of the agents of others that users may choose.')
  acpAgentsFile: string | null;
  @PathVariable(
    'SKILLS_DIR',
    'Folder with skills for all agents: `NAME.md` or `NAME/SKILL.md`. Those without `triggers` in their frontmatter are part of every prompt.',
  )
  skillsDir: string | null;

  @UrlVariable('TAVILY_API_URL', "Where the agents' tool `web_search` sends its queries.", {
    default: 'https://api.tavily.com',
  })
  tavilyApiUrl: string;

  @IntegerVariable(
    'MAX_CONVERSATIONS_PER_USER',
    'Conversations that one user may have stored. One more is refused with 409 `conversation_limit`.',
    { default: '10000', minimum: 1, maximum: 100_000_000 },
  )
  maxConversations: number;
}
