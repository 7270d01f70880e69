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
  environment: (modelUrl: string) => Record<string, string>;
  /** The session mode in which it asks; null means the one that it begins with. */
  askingMode: string | null;
}

export const REAL_AGENTS: readonly RealAgent[] = [
  {
    name: 'claude',
    command: 'claude-agent-acp',
    args: [],
    startModel: startAnthropicModel,
    environment: (url) => ({
      // It adds the version itself.
      ANTHROPIC_BASE_URL: url.replace(/\/v1$/, ''),
      ANTHROPIC_API_KEY: 'key-of-a-scripted-model',
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
    environment: (url) => ({
      OPENAI_BASE_URL: url,
      OPENAI_API_KEY: 'key-of-a-scripted-model',
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
    environment: (url) => ({
      OPENAI_API_KEY: 'key-of-a-scripted-model',
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
    environment: (url) => ({
      GOOGLE_GEMINI_BASE_URL: url,
      GEMINI_API_KEY: 'key-of-a-scripted-model',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
    }),
    askingMode: null,
  },
  {
    name: 'opencode',
    command: 'opencode',
    args: ['acp'],
    startModel: startOpenAiModel,
    environment: (url) => ({
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: url, apiKey: 'key-of-a-scripted-model' },
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
    environment: (url) => ({
      COPILOT_PROVIDER_BASE_URL: url,
      COPILOT_PROVIDER_API_KEY: 'key-of-a-scripted-model',
      COPILOT_MODEL: 'scripted',
      COPILOT_OFFLINE: 'true',
    }),
    askingMode: null,
  },
];
