import {
  AmountVariable,
  IntegerVariable,
  PathVariable,
  SwitchVariable,
  TextVariable,
  UrlVariable,
} from '@slipway/configuration/variables.js';

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

  @TextVariable(
    'DEFAULT_LLM_MODEL',
    'Model of users who set none, as they would name it: `anthropic/claude-sonnet-4-5`.',
  )
  defaultLlmModel: string | null;

  @UrlVariable(
    'DEFAULT_LLM_BASE_URL',
    'Address at which models are called for users who set neither an address nor a model with a key of their own. Use https, as sandboxes call it, and no gateway that passes requests on to where a header or member of theirs says.',
  )
  defaultLlmBaseUrl: string | null;

  @TextVariable(
    'DEFAULT_LLM_API_KEY',
    'Key of that model, for users without one. It goes to the address or the provider of `DEFAULT_LLM_*` alone, in sandboxes that run the own agent and no image of a user; no response has it. Give one with a limit of its own.',
    { isSecret: true },
  )
  defaultLlmApiKey: string | null;

  @PathVariable(
    'DEFAULT_MCP_SERVERS_FILE',
    'YAML or JSON with tool servers for all users: `files: { url: https://tools.example.com/mcp, api_key: … }` or `{ command, args, env }`, by name. One that a user has under the same name takes its place. They are not shown.',
  )
  defaultMcpServersFile: string | null;

  @AmountVariable(
    'DEFAULT_MAX_BUDGET_PER_TASK',
    'Most US dollars that a conversation of a user without a limit may cost. A model without a known price needs one in `MODEL_PRICES_FILE`.',
  )
  defaultMaxBudgetPerTask: number | null;
}
