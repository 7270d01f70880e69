import { open, readFile, rename } from 'node:fs/promises';
import type { ConfirmationPolicy, SecurityAnalyzer } from '../../agent-protocol/conversation.js';
import { jsonText } from '../../common/json-access.js';
import type { ExecutionStatus } from '../engine/agent-engine.js';
import type { CredentialsUpdate, StartRequest } from './schemas.js';

/** Writes the newest record, one write at a time; records that were replaced while one was written are left out. */
export class RecordFile {
  readonly #file: string;
  #waiting: ConversationRecord | null = null;
  #writing: Promise<void> | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** Resolves once this record, or a newer one, is on the disk. */
  async save(record: ConversationRecord): Promise<void> {
    this.#waiting = record;
    while (this.#waiting !== null) {
      this.#writing ??= this.#writeWaiting().finally(() => {
        this.#writing = null;
      });
      await this.#writing;
    }
    await this.#writing;
  }

  async #writeWaiting(): Promise<void> {
    const record = this.#waiting;
    this.#waiting = null;
    if (record !== null) {
      await writeRecord(this.#file, record);
    }
  }
}

const MASK = '**********';
const SECRET_MEMBER =
  /^(api_key|aws_access_key_id|aws_secret_access_key|auth|authorization|password|token|secret)$/i;
/** Whatever stands in these is a secret: only the names are shown. */
const SECRET_MAP = /^(env|headers|extra_headers|secrets|litellm_extra_body)$/i;

/** An agent's specification as it may be written and shown: secrets replaced, all else as it came. */
export function redactAgent(agent: Record<string, unknown>): Record<string, unknown> {
  return redactMembers(agent, false);
}

function redactMembers(value: object, all: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      redact(member, all || SECRET_MAP.test(key) || (typeof member === 'string' && SECRET_MEMBER.test(key))),
    ]),
  );
}

function redact(value: unknown, all: boolean): unknown {
  if (typeof value === 'string') {
    return all ? MASK : withoutUserInfo(value);
  }
  if (Array.isArray(value)) {
    return value.map((item) => redact(item, all));
  }
  return typeof value === 'object' && value !== null ? redactMembers(value, all) : value;
}

function withoutUserInfo(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#@]+@/i, `$1${MASK}@`);
}

/** What a conversation keeps beside its events, on disk too: nothing in it is secret. */
export interface ConversationRecord {
  /** UUID with dashes. */
  id: string;
  /** ISO 8601 with zone. */
  createdAt: string;
  updatedAt: string;
  title: string | null;
  status: ExecutionStatus;
  /** The server ended while the agent worked. */
  wasRunning: boolean;
  /** As it was given, secrets masked. */
  agent: Record<string, unknown>;
  llm: { model: string; baseUrl: string | null; timeoutMs: number; usageId: string };
  /** A key was given once: without it the model need not be asked. */
  llmKeyNeeded: boolean;
  workingDir: string;
  maxIterations: number;
  maxBudget: number | null;
  stuckDetection: boolean;
  confirmationPolicy: ConfirmationPolicy;
  securityAnalyzer: SecurityAnalyzer | null;
  condenserTokens: number | null;
  language: string | null;
  systemPromptSuffix: string | null;
  tavilyApiUrl: string;
  modelPrices: Record<string, { input: number; output: number }>;
  /** Servers whose addresses users may give; null: any. */
  outboundAllowlist: string[] | null;
  /** Kind and description of each secret; no values. */
  secrets: Record<string, { kind: string; description: string | null }>;
  usage: { iterations: number; promptTokens: number; completionTokens: number; costUsd: number };
}

const DEFAULT_LLM_TIMEOUT_SECONDS = 120;
const DEFAULT_CONDENSER_TOKENS = 96_000;
const TOKENS_PER_PRICE = 1_000_000;

/** The record of a conversation that begins now. */
export function newRecord(id: string, workingDir: string, request: StartRequest): ConversationRecord {
  const { agent, slipway } = request;
  const now = new Date().toISOString();
  return {
    id,
    createdAt: now,
    updatedAt: now,
    title: null,
    status: 'idle',
    wasRunning: false,
    agent: redactAgent(agent),
    llm: {
      model: agent.llm.model,
      baseUrl: agent.llm.base_url ?? null,
      timeoutMs: (agent.llm.timeout ?? DEFAULT_LLM_TIMEOUT_SECONDS) * 1000,
      usageId: agent.llm.usage_id,
    },
    llmKeyNeeded: Boolean(agent.llm.api_key),
    workingDir,
    maxIterations: request.max_iterations,
    maxBudget: slipway.max_budget ?? null,
    stuckDetection: request.stuck_detection,
    confirmationPolicy: request.confirmation_policy,
    securityAnalyzer: request.security_analyzer ?? null,
    condenserTokens: condenserTokens(agent.condenser),
    language: slipway.language ?? null,
    systemPromptSuffix: agent.agent_context?.system_message_suffix ?? null,
    tavilyApiUrl: slipway.tavily_api_url ?? 'https://api.tavily.com',
    modelPrices: modelPrices(request),
    outboundAllowlist: slipway.outbound_allowlist ?? null,
    secrets: describeSecrets(request.secrets),
    usage: { iterations: 0, promptTokens: 0, completionTokens: 0, costUsd: 0 },
  };
}

/** What may be told of secrets. */
function describeSecrets(secrets: StartRequest['secrets']): ConversationRecord['secrets'] {
  return Object.fromEntries(
    Object.entries(secrets).map(([name, source]) => [
      name,
      {
        kind: source.kind,
        description: 'description' in source ? (source.description ?? null) : null,
      },
    ]),
  );
}

/** @throws Error when the file is missing or is no record */
export async function readRecord(file: string): Promise<ConversationRecord> {
  const record: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (!isRecord(record)) {
    throw new Error('the file is no record of a conversation');
  }
  return record;
}

/** The file is ours alone: damage is all that can be wrong with it. */
function isRecord(value: unknown): value is ConversationRecord {
  return jsonText(value, 'id') !== null && jsonText(value, 'status') !== null;
}

/** Replaces the file as a whole: whoever reads it sees the old or the new one. */
export async function writeRecord(file: string, record: ConversationRecord): Promise<void> {
  const temporary = `${file}.new`;
  const handle = await open(temporary, 'w', 0o600);
  try {
    await handle.writeFile(JSON.stringify(record));
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
}

function condenserTokens(condenser: StartRequest['agent']['condenser']): number | null {
  if (!condenser || condenser.kind === 'NoOpCondenser') {
    return null;
  }
  return condenser.max_tokens ?? DEFAULT_CONDENSER_TOKENS;
}

function modelPrices({ agent, slipway }: StartRequest): ConversationRecord['modelPrices'] {
  const { model, input_cost_per_token: input, output_cost_per_token: output } = agent.llm;
  const own =
    typeof input === 'number' && typeof output === 'number'
      ? { [model]: { input: input * TOKENS_PER_PRICE, output: output * TOKENS_PER_PRICE } }
      : {};
  return { ...slipway.model_prices, ...own };
}

/** What of an update is kept on the disk: nothing secret, and only what was given. */
export function recordChanges(
  { llmKeyNeeded, secrets }: Pick<ConversationRecord, 'llmKeyNeeded' | 'secrets'>,
  update: CredentialsUpdate,
): Partial<ConversationRecord> {
  // A key that is withheld is needed as much as before: the model is not called without it.
  const saysNothing = update.llm_api_key === undefined || update.llm_key_withheld === true;
  return {
    llmKeyNeeded: saysNothing ? llmKeyNeeded : Boolean(update.llm_api_key),
    secrets: { ...secrets, ...describeSecrets(update.secrets ?? {}) },
    ...(update.language !== undefined && { language: update.language }),
    ...(update.outbound_allowlist !== undefined && { outboundAllowlist: update.outbound_allowlist }),
    ...(update.max_budget !== undefined && { maxBudget: update.max_budget }),
    ...(update.max_iterations !== undefined && { maxIterations: update.max_iterations }),
  };
}
