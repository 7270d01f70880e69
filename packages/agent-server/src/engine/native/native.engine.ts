import { setTimeout as sleep } from 'node:timers/promises';
import { privateFolder } from '../../git/private-repository.js';
import { RemoteAccess } from '../../git/remote-access.js';
import { shellCredentials } from '../../git/run-git.js';
import { toolEnvironment } from '../../tool-view.js';
import { postPullRequest, postPush } from '../../tools/git.tools.js';
import {
  AgentEngine,
  AgentUnavailableError,
  type EngineContext,
  type EngineHost,
  type EngineServerOptions,
} from '../agent-engine.js';
import { limitReached, countUsage } from '../limits.js';
import { closeOpenCalls, rejectOpenCalls } from '../agent-events.js';
import { AgentLoop, promptFor } from './agent-loop.js';
import { Condenser } from './condenser.js';
import { callModelWithImages, type ModelRequest, type Wait } from './model-call.js';
import { type ModelFactory, modelFactory } from './language-model.js';
import { LlmFailure } from './llm-failure.js';
import { NativeTools, type NativeToolsOptions, SYSTEM_PROMPT } from './native-tools.js';
import { offeredTool } from './tool-calls.js';

interface NativeEngineOptions extends NativeToolsOptions {
  conversationId: string;
  anthropicUrl: string;
  wait: Wait;
}

const DEFAULTS: NativeEngineOptions = {
  conversationId: 'conversation',
  view: { environment: toolEnvironment({}), wrapper: [] },
  workArea: null,
  pullRequests: null,
  remoteAccess: () => null,
  mcpConnectTimeoutMs: 300_000,
  mcpSlowAfterMs: 10_000,
  anthropicUrl: 'https://api.anthropic.com/v1',
  wait: async (milliseconds, signal) => {
    await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
  },
};

interface EngineResources {
  tools: NativeTools;
  condenser: Condenser;
}

/**
 * Our own agent: a model that is called step by step, and our tools. All that it knows is in the log. This module
 * loads the AI SDK, which takes some hundred milliseconds: import it when the first conversation runs.
 */
export class NativeEngine extends AgentEngine {
  readonly #options: NativeEngineOptions;
  readonly #createModel: ModelFactory;
  #resources: EngineResources | null = null;

  /** @param options by default: no isolation, no pull requests, git in the shell only */
  constructor(options: Partial<NativeEngineOptions> = {}) {
    super();
    this.#options = { ...DEFAULTS, ...options };
    this.#createModel = modelFactory(this.#options.anthropicUrl, this.#options.conversationId);
  }

  /** Calls that were not confirmed, or that an earlier run left open, are closed with an error, not run. */
  async run(host: EngineHost, signal: AbortSignal): Promise<void> {
    await closeOpenCalls(host, 'Not run, or interrupted: it has no result.');
    await this.#createLoop(host, signal).run();
  }

  async confirm(host: EngineHost, rejection: string | null, signal: AbortSignal): Promise<void> {
    if (rejection === null) {
      await this.#createLoop(host, signal).runOpenCalls();
    } else {
      await rejectOpenCalls(host, rejection);
      // Clients run the agent again, or their user says what to do instead.
      await host.setStatus('idle');
    }
  }

  async ask(host: EngineHost, question: string, signal: AbortSignal): Promise<string> {
    const { settings } = host;
    const limit = limitReached(settings, { costUsd: host.totals().costUsd, iterations: 0 });
    if (limit !== null) {
      throw new AgentUnavailableError(limit.detail);
    }
    try {
      const model = await this.#createModel(settings);
      const { instructions, messages } = promptFor(model, host);
      messages.push({ role: 'user', content: `${INSTRUCTIONS}\n\n${question}` });
      // The history may have calls of them.
      const tools = this.#openResources(host).tools.offered();
      const request: ModelRequest = {
        model,
        instructions: instructions ?? SYSTEM_PROMPT,
        messages,
        tools: [...tools.values()].map((tool) => offeredTool(tool, false)),
        toolChoice: 'none',
        signal,
      };
      const { wait } = this.#options;
      const response = await callModelWithImages(request, { host, wait, isQuiet: true });
      await countUsage(host, settings, response, messages, false);
      return response.text;
    } catch (error) {
      throw error instanceof LlmFailure ? new AgentUnavailableError(error.message, { cause: error }) : error;
    }
  }

  async condense(host: EngineHost, signal: AbortSignal): Promise<boolean> {
    return await this.#createLoop(host, signal).condense();
  }

  async prepare(): Promise<void> {}

  async switchModel(): Promise<void> {
    throw new AgentUnavailableError('The model of this agent is a setting of the conversation.');
  }

  async close(): Promise<void> {
    await this.#resources?.tools.close();
    this.#resources = null;
  }

  #createLoop(host: EngineHost, signal: AbortSignal): AgentLoop {
    const resources = this.#openResources(host);
    return new AgentLoop({
      host,
      signal,
      wait: this.#options.wait,
      createModel: this.#createModel,
      ...resources,
    });
  }

  #openResources(host: EngineHost): EngineResources {
    this.#resources ??= {
      tools: new NativeTools(host, this.#options),
      condenser: new Condenser(host, this.#options.wait),
    };
    return this.#resources;
  }
}

export function createNativeEngine(
  { conversationId, gitAccess }: EngineContext,
  server: EngineServerOptions,
): NativeEngine {
  const { webhook, environment, toolWrapper: wrapper, aliases } = server;
  const [sessionKey] = server.sessionKeys;
  const view = { environment, wrapper, aliases };
  const service =
    webhook === null || sessionKey === undefined
      ? null
      : { url: `${webhook.baseUrl}/pull-requests`, sessionKey, conversationId };
  const access = new RemoteAccess({
    view,
    privateFolder: privateFolder(server.conversationsPath),
    git: () => gitAccess() ?? { credentials: [] },
    elsewhere: service === null ? undefined : postPush(service),
  });
  return new NativeEngine({
    conversationId,
    view,
    workArea: server.workspace,
    remoteAccess: () => (isHiddenFromShell(gitAccess()) ? access : null),
    pullRequests: service && {
      open: postPullRequest(service),
      mayPush: () => (gitAccess()?.mode ?? 'write') === 'write',
      push: async (folder, branch, signal) => await access.push(folder, branch, signal),
    },
  });
}

function isHiddenFromShell(git: ReturnType<EngineContext['gitAccess']>): boolean {
  return git !== null && git.credentials.length > shellCredentials(git).length;
}

const INSTRUCTIONS =
  'This question is asked beside your work. Answer it in words, from what you know by now; call no tool. Afterwards your work goes on as if it had not been asked.';
