import {
  type ModelForAgents,
  startAnthropicModel,
  startGeminiModel,
  startOpenAiModel,
  startResponsesModel,
} from './model-for-agents.js';

/** An agent from npm (scripts/test-acp.mjs installs it), and how it is pointed at a scripted model. */
export interface RealAgent {
  name: string;
  /** Below `node_modules/.bin`. */
  command: string;
  args: string[];
  startModel: () => Promise<ModelForAgents>;
  /** Of the form of the vendor's keys. */
  key: string;
  environment: (modelUrl: string, key: string) => Record<string, string>;
  /** The session mode in which it asks; null means the one that it begins with. */
  askingMode: string | null;
}

export const REAL_AGENTS: readonly RealAgent[] = [
  {
    name: 'claude',
    command: 'claude-agent-acp',
    args: [],
    startModel: startAnthropicModel,
    key: `sk-ant-api03-${'aB3-_'.repeat(18)}xyz-AA`,
    environment: (url, key) => ({
      // It adds the version itself.
      ANTHROPIC_BASE_URL: url.replace(/\/v1$/, ''),
      ANTHROPIC_API_KEY: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    askingMode: 'default',
  },
  {
    name: 'qwen',
    command: 'qwen',
    args: ['--acp', '--auth-type', 'openai'],
    startModel: startOpenAiModel,
    key: `sk-${'0a1b'.repeat(8)}`,
    environment: (url, key) => ({
      OPENAI_BASE_URL: url,
      OPENAI_API_KEY: key,
      OPENAI_MODEL: 'scripted',
      QWEN_TELEMETRY_ENABLED: 'false',
    }),
    askingMode: 'default',
  },
  {
    name: 'codex',
    command: 'codex-acp',
    args: [],
    startModel: startResponsesModel,
    key: `sk-proj-${'aB3_-'.repeat(30)}`,
    environment: (url, key) => ({
      OPENAI_API_KEY: key,
      NO_BROWSER: '1',
      CODEX_CONFIG: JSON.stringify({
        model: 'scripted',
        model_provider: 'scripted',
        model_providers: {
          scripted: { name: 'scripted', base_url: url, wire_api: 'responses', env_key: 'OPENAI_API_KEY' },
        },
      }),
    }),
    askingMode: 'read-only',
  },
  {
    name: 'gemini',
    command: 'gemini',
    args: ['--acp'],
    startModel: startGeminiModel,
    key: `AIzaSy${'aB3-_zY9xW0'.repeat(3)}`,
    environment: (url, key) => ({
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: key,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    askingMode: null,
  },
  {
    name: 'opencode',
    command: 'opencode',
    args: ['acp'],
    startModel: startOpenAiModel,
    key: `sk-or-v1-${'0a1b'.repeat(16)}`,
    environment: (url, key) => ({
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: url, apiKey: key },
            models: { scripted: {} },
          },
        },
        model: 'scripted/scripted',
        autoupdate: false,
        permission: { bash: 'ask' },
      }),
    }),
    askingMode: null,
  },
  {
    name: 'copilot',
    command: 'copilot',
    args: ['--acp'],
    startModel: startOpenAiModel,
    key: `sk-proj-${'aB3_-'.repeat(30)}`,
    environment: (url, key) => ({
      COPILOT_PROVIDER_BASE_URL: url,
      COPILOT_PROVIDER_API_KEY: key,
      COPILOT_MODEL: 'scripted',
      COPILOT_OFFLINE: 'true',
    }),
    askingMode: null,
  },
];
