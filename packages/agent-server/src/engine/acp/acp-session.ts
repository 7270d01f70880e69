import {
  AGENT_METHODS,
  type ContentBlock,
  type McpServer as AcpMcpServer,
  PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';
import { inTime } from '@slipway/common/async.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import type { AcpLaunch, AgentDetails, EngineHost } from '../agent-engine.js';
import type { ToolView } from '../../tool-view.js';
import { AcpConnection, AcpFailure } from './acp-connection.js';
import type { AcpConversation } from './acp-conversation.js';
import {
  type AgentDescription,
  configChangeSchema,
  initializeSchema,
  loadedSessionSchema,
  newSessionSchema,
  promptResponseSchema,
  type PromptResponse,
  type SessionDescription,
} from './acp-schemas.js';
import { z } from 'zod';

/** Methods that take a key from a variable without naming it; agents that sign in without a request are not listed. */
const AUTH_BY_VARIABLE: readonly (readonly [method: string, variable: string])[] = [
  ['gemini-api-key', 'GEMINI_API_KEY'],
  ['api-key', 'OPENAI_API_KEY'],
  ['api-key', 'CODEX_API_KEY'],
];
/** Predates configuration options, and is still in use. */
const SET_MODEL = 'session/set_model';
const FORK = 'session/fork';
const MAX_MODELS = 200;
const REQUEST_TIMEOUT_MS = 30_000;

interface AcpSessionOptions {
  view: ToolView;
  host: EngineHost;
  launch: AcpLaunch;
  conversation: AcpConversation;
  /** The session to go on with; null begins a new one. */
  earlier: string | null;
}

interface OpenedSession {
  id: string;
  isLoaded: boolean;
  mcpProblems: readonly string[];
  agent: AgentDescription;
  described: SessionDescription;
}

export class AcpSession {
  readonly id: string;
  /** Whether the agent remembers what it did in an earlier process. */
  readonly isLoaded: boolean;
  readonly mcpProblems: readonly string[];
  readonly #agent: AgentDescription;
  #described: SessionDescription;
  #model: string | null;

  private constructor(
    readonly connection: AcpConnection,
    { id, isLoaded, mcpProblems, agent, described }: OpenedSession,
  ) {
    this.id = id;
    this.isLoaded = isLoaded;
    this.mcpProblems = mcpProblems;
    this.#agent = agent;
    this.#described = described;
    this.#model = currentModel(described);
  }

  /** What the agent replays of its session reaches the client before this resolves. @throws AcpFailure */
  static async open(options: AcpSessionOptions): Promise<AcpSession> {
    const { view, host, launch, conversation } = options;
    const environment = { ...host.toolEnvironment(), ...launch.environment };
    const { workingDir } = host.settings;
    const connection = await AcpConnection.open(
      { view, command: launch.command, workingDir, environment },
      conversation,
    );
    try {
      const seconds = launch.startTimeoutMs / 1000;
      const late = (): string => `The agent did not begin within ${seconds} seconds.${connection.lastWords}`;
      const opening = openSession(connection, options, environment);
      return new AcpSession(connection, await within(launch.startTimeoutMs, opening, late));
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  get details(): AgentDetails {
    const { agentInfo, agentCapabilities: capabilities } = this.#agent;
    const models = offeredModels(this.#described);
    return {
      name: agentInfo?.name ?? '',
      version: agentInfo?.version ?? '',
      capabilities: {
        loadSession: capabilities.loadSession,
        image: capabilities.promptCapabilities.image,
        mcpHttp: capabilities.mcpCapabilities.http,
        mcpSse: capabilities.mcpCapabilities.sse,
        modelChoice: models.length > 0,
      },
      currentModel: this.#model,
      models,
    };
  }

  async prompt(prompt: ContentBlock[], sessionId: string = this.id): Promise<PromptResponse> {
    const params = { sessionId, prompt };
    return await this.connection.request(AGENT_METHODS.session_prompt, params, promptResponseSchema);
  }

  /** @throws AcpFailure when the agent does not offer the model */
  async switchModel(model: string): Promise<void> {
    const option = modelOption(this.#described);
    const request =
      option === undefined
        ? this.connection.request(SET_MODEL, { sessionId: this.id, modelId: model }, z.unknown())
        : this.connection.request(
            AGENT_METHODS.session_set_config_option,
            { sessionId: this.id, configId: option.id, value: model },
            configChangeSchema,
          );
    const offered = offeredModels(this.#described).map(({ model_id: id }) => id);
    const answer = await taken(`model ${model}`, offered, request);
    const changed = configChangeSchema.safeParse(answer).data?.configOptions ?? [];
    if (changed.length > 0) {
      this.#described = { ...this.#described, configOptions: changed };
    }
    this.#model = model;
  }

  /** @throws AcpFailure when the agent has no such mode */
  async setMode(modeId: string): Promise<void> {
    const params = { sessionId: this.id, modeId };
    const offered = this.#described.modes?.availableModes.map(({ id }) => id) ?? [];
    const request = this.connection.request(AGENT_METHODS.session_set_mode, params, z.unknown());
    await taken(`mode ${modeId}`, offered, request);
  }

  /** Forks the session with everything that it knows, and returns the new id; null when the agent cannot fork. */
  async fork(workingDir: string): Promise<string | null> {
    if (!this.#agent.agentCapabilities.sessionCapabilities.fork) {
      return null;
    }
    const forked = await this.connection.request(
      FORK,
      { sessionId: this.id, cwd: workingDir, mcpServers: [] },
      newSessionSchema,
    );
    return forked.sessionId;
  }
}

async function openSession(
  connection: AcpConnection,
  { host: { settings }, launch, earlier }: AcpSessionOptions,
  environment: Readonly<Record<string, string>>,
): Promise<OpenedSession> {
  const agent = await connection.request(
    AGENT_METHODS.initialize,
    {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      clientInfo: { name: 'slipway', version: '1' },
    },
    initializeSchema,
  );
  if (agent.protocolVersion !== PROTOCOL_VERSION) {
    throw new AcpFailure(
      `The agent speaks version ${agent.protocolVersion} of the Agent Client Protocol; version ${PROTOCOL_VERSION} is needed.`,
      'ACPInitError',
    );
  }
  connection.signInHint = signInHint(agent);
  const method = launch.authMethod ?? methodOf(agent, environment);
  if (method !== null) {
    await connection.request(AGENT_METHODS.authenticate, { methodId: method }, z.unknown());
  }
  const takes = agent.agentCapabilities.mcpCapabilities;
  const addresses = new OutboundAddresses(settings.outboundAllowlist);
  const { servers, problems } = toMcpServers(settings.mcpConfig, takes, addresses);
  const place = { cwd: settings.workingDir, mcpServers: servers };
  const loaded =
    earlier !== null && agent.agentCapabilities.loadSession
      ? await load(connection, { ...place, sessionId: earlier })
      : null;
  if (earlier !== null && loaded !== null) {
    return { id: earlier, isLoaded: true, mcpProblems: problems, agent, described: loaded };
  }
  const { sessionId, ...described } = await connection.request(
    AGENT_METHODS.session_new,
    place,
    newSessionSchema,
  );
  return { id: sessionId, isLoaded: false, mcpProblems: problems, agent, described };
}

/** @returns null when the agent does not have the session any more */
async function load(connection: AcpConnection, params: unknown): Promise<SessionDescription | null> {
  try {
    return await connection.request(AGENT_METHODS.session_load, params, loadedSessionSchema);
  } catch (error) {
    if (error instanceof AcpFailure && error.code === 'ACPPromptError') {
      return null;
    }
    throw error;
  }
}

function signInHint({ authMethods }: AgentDescription): string {
  const methods = authMethods.map(({ id, name, description }) =>
    description ? `${name || id} (${description})` : name || id,
  );
  return methods.length === 0 ? '' : ` Its ways to sign in: ${methods.join('; ')}.`;
}

function methodOf(
  { authMethods }: AgentDescription,
  environment: Readonly<Record<string, string>>,
): string | null {
  const byVariable = authMethods.find(
    ({ vars }) =>
      vars.some(({ name }) => environment[name]) &&
      vars.every(({ name, optional }) => optional || environment[name]),
  );
  const offered = new Set(authMethods.map(({ id }) => id));
  const found = AUTH_BY_VARIABLE.find(([method, variable]) => offered.has(method) && environment[variable]);
  return byVariable?.id ?? found?.[0] ?? null;
}

type ConfigOption = SessionDescription['configOptions'][number];

function modelOption({ configOptions }: SessionDescription): ConfigOption | undefined {
  const selects = configOptions.filter(({ type }) => type === 'select');
  return selects.find(({ id }) => id === 'model') ?? selects.find(({ category }) => category === 'model');
}

function currentModel(described: SessionDescription): string | null {
  const value = modelOption(described)?.currentValue;
  return typeof value === 'string' ? value : (described.models?.currentModelId ?? null);
}

function offeredModels(described: SessionDescription): AgentDetails['models'] {
  const option = modelOption(described);
  const older = described.models?.availableModels.map(({ modelId, ...model }) => ({
    value: modelId,
    ...model,
  }));
  return (option?.options ?? older ?? []).slice(0, MAX_MODELS).map(({ value, name, description }) => ({
    model_id: value,
    name: name || null,
    description: description ?? null,
  }));
}

/** The user's tool servers in the form that the agent accepts, and a sentence about each one that it cannot use. */
interface OfferedMcpServers {
  servers: AcpMcpServer[];
  problems: string[];
}

/** The agent connects to them itself, from where tools run, so their addresses are checked only here. */
export function toMcpServers(
  configured: McpServers | null,
  takes: { http: boolean; sse: boolean },
  addresses: OutboundAddresses,
): OfferedMcpServers {
  const offered: OfferedMcpServers = { servers: [], problems: [] };
  for (const [name, server] of Object.entries(configured ?? {})) {
    if (server.tools !== undefined) {
      const detail = `The tool server ${name} offers all of its tools: agents of others take no list of allowed ones.`;
      offered.problems.push(detail);
    }
    if ('command' in server) {
      const { command, args = [], env = {} } = server;
      offered.servers.push({ name, command, args, env: toList(env) });
      continue;
    }
    const { transport: type, url, headers = {} } = server;
    const problem = takes[type] ? addresses.problem(url) : `the agent supports no tool servers over ${type}.`;
    if (problem === null) {
      offered.servers.push({ type, name, url, headers: toList(headers) });
    } else {
      offered.problems.push(`The tool server ${name} cannot be used: ${problem}`);
    }
  }
  return offered;
}

function toList(values: Record<string, string>): { name: string; value: string }[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}

/** Adds to a refusal what there is to choose from: some agents say no more than "Invalid params". */
async function taken<T>(choice: string, offered: readonly string[], request: Promise<T>): Promise<T> {
  try {
    return await within(REQUEST_TIMEOUT_MS, request);
  } catch (error) {
    if (!(error instanceof AcpFailure) || error.code !== 'ACPPromptError' || offered.length === 0) {
      throw error;
    }
    const message = `The agent does not take the ${choice}; it offers ${offered.join(', ')}. ${error.message}`;
    throw new AcpFailure(message, error.code, { cause: error });
  }
}

/** @throws AcpFailure when the work takes longer */
async function within<T>(
  milliseconds: number,
  work: Promise<T>,
  message = (): string => 'The agent did not answer in time.',
): Promise<T> {
  return await inTime(milliseconds, work, () => new AcpFailure(message(), 'ACPStartupTimeout'));
}
