import { type ModelForAgents, startAnthropicModel, startOpenAiModel } from './model-for-agents.js';

/** An agent from npm (scripts/test-acp.mjs installs it), and how it is pointed at a scripted model. */
export interface RealAgent {
  name: string;
  /** Below `node_modules/.bin`. */
  command: string;
  args: string[];
  startModel: () => Promise<ModelForAgents>;
  environment: (modelUrl: string) => Record<string, string>;
  /** The session mode in which it asks; null: the one that it begins with. */
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
    askingMode: null,
  },
];
