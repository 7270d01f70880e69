import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { parseDestination } from '@slipway/common/http/address-rules.js';
import { HostAllowlist, OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { jsonAt, jsonList, jsonText, parseJson, isJsonObject } from '@slipway/common/json-access.js';
import {
  addressToCheck,
  hostOf,
  isAzure,
  isOwnServer,
  type ModelApi,
  modelEndpoint,
} from '@slipway/common/model-endpoint.js';
import { withoutSecret } from '@slipway/common/secret-mask.js';
import { ServiceHttpClient } from '../common/http/service-http.client.js';
import { UpstreamError, type UpstreamReason } from '@slipway/common/http/upstream-error.js';
import { type AppConfig, proxyOf } from '../config/app-config.js';

/** A model with the key that it is called with, in clear. */
export interface CheckedModel {
  model: string | null;
  base_url: string | null;
  api_key: string | null;
  /** Sent with every request to it. */
  headers?: Readonly<Record<string, string>>;
  api?: ModelApi | null;
}

export const MODEL_WARNING_CODES = [
  'unauthorized',
  'rate_limited',
  'rejected',
  'unavailable',
  'timeout',
  'refused',
  'unknown_model',
] as const;

/** A model that was stored although its server did not accept it, or was not asked. */
export interface ModelWarning {
  code: (typeof MODEL_WARNING_CODES)[number];
  detail: string;
}

/** The user who stores a model waits for this. */
const TIMEOUT_MS = 5_000;
/** Lists of thousands of models have a megabyte. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;
const MAX_REASON = 300;
const OPENROUTER_HOST = 'openrouter.ai';
const LOOPBACK = ['localhost', '127.0.0.1'];
const ANTHROPIC_URL = 'https://api.anthropic.com/v1';

/** Why another address is not asked, and what an operator can do. */
export const OPEN_ADDRESSES =
  'this service calls public https addresses, and those that an operator opens with SANDBOX_NETWORK_ALLOW';

const UNREACHED: Readonly<Record<UpstreamReason, [ModelWarning['code'], string]>> = {
  timeout: ['timeout', `its server did not answer within ${TIMEOUT_MS / 1000} seconds`],
  network: ['unavailable', 'its server could not be reached'],
  share: ['unavailable', 'too many requests to its server are under way'],
  refused: ['refused', OPEN_ADDRESSES],
  redirect: ['unavailable', 'its server sends requests on to another one'],
  too_large: ['unavailable', 'its server sent too much'],
  malformed: ['unavailable', 'its server sent a malformed response'],
};

/** HTTP client for the servers of models: reaches public addresses, and those that the operator opens to agents. */
export class ModelHttpClient extends ServiceHttpClient {}

/** @returns the client for the configured proxy and hosts */
export function createModelHttpClient(
  { outbound, sandboxes }: AppConfig,
  timeoutMs = TIMEOUT_MS,
): ModelHttpClient {
  const opened = sandboxes.networkAllow.flatMap((entry) => {
    const destination = parseDestination(entry);
    if (destination?.kind !== 'host' || destination.port === null) {
      return [];
    }
    const { host, port } = destination;
    // To sandboxes they are one.
    const names = LOOPBACK.includes(host) ? LOOPBACK : [host];
    return names.flatMap((name) => [`http://${name}:${port}`, `https://${name}:${port}`]);
  });
  return new ModelHttpClient({
    allowlist: HostAllowlist.parse([...(outbound.allowlist ?? []), ...opened]),
    maxResponseBytes: MAX_RESPONSE_BYTES,
    timeoutMs,
    proxy: proxyOf(outbound),
  });
}

/** Asks the server of a model once whether it accepts the key and knows the model. Nothing is generated. */
@Injectable()
export class ModelCheck {
  private readonly logger = new Logger(ModelCheck.name);

  constructor(
    private readonly http: ModelHttpClient,
    private readonly addresses: OutboundAddresses,
  ) {}

  /** Takes up to 5 seconds. @returns null when the server accepts the model, and when there is too little to ask it */
  async warning(userId: string, checked: CheckedModel): Promise<ModelWarning | null> {
    const warning = await this.ask(userId, checked);
    if (warning !== null) {
      this.logger.warn('failed to verify a model', { code: warning.code });
    }
    return warning;
  }

  private async ask(userId: string, checked: CheckedModel): Promise<ModelWarning | null> {
    const { api_key } = checked;
    const request = requestOf(checked);
    if (request === null) {
      return null;
    }
    const address = addressToCheck(checked.model ?? '', checked.base_url);
    const problem = address === null ? null : this.addresses.problem(address);
    if (problem !== null) {
      return unverified('refused', problem.replace(/\.$/, ''));
    }
    try {
      const response = await this.http.fetch(request.url, { headers: request.headers, holder: userId });
      return verdict({ status: response.status, text: await response.text() }, request, api_key);
    } catch (error) {
      if (error instanceof UpstreamError) {
        const [code, reason] = UNREACHED[error.reason];
        const why = error.reason === 'network' ? `: ${errorMessage(error.cause)}` : '';
        return unverified(code, `${reason}${why}`);
      }
      throw error;
    }
  }
}

/** `extra_headers` of a configuration. */
export function headersIn(llm: unknown): Record<string, string> {
  const headers = jsonAt(llm, 'extra_headers');
  return Object.fromEntries(
    Object.entries(isJsonObject(headers) ? headers : {}).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}

/** `api` of a configuration; null: what the address says. */
export function apiIn(llm: unknown): ModelApi | null {
  const api = jsonText(llm, 'api');
  return api === 'anthropic' || api === 'openai' || api === 'openai-responses' ? api : null;
}

/** The cheapest request that needs the key; null: the server, or everything that it could check, is missing. */
function requestOf({
  model,
  base_url,
  api_key,
  headers: extra = {},
  api = null,
}: CheckedModel): { url: string; headers: Record<string, string>; model: string } | null {
  const name = model?.trim() ?? '';
  const isAskable = api_key !== null || (base_url ?? '').trim() !== '' || isOwnServer(name);
  const endpoint = modelEndpoint(name, base_url, api);
  if ('problem' in endpoint || !isAskable) {
    return null;
  }
  if (endpoint.api === 'anthropic') {
    if (endpoint.baseUrl !== null && hostOf(endpoint.baseUrl) !== hostOf(ANTHROPIC_URL)) {
      // Gateways that speak Anthropic's form have no list of models, as a rule.
      return null;
    }
    return {
      url: `${ANTHROPIC_URL}/models?limit=1000`,
      headers: {
        ...extra,
        'anthropic-version': '2023-06-01',
        ...(api_key !== null && { 'x-api-key': api_key }),
      },
      model: endpoint.model,
    };
  }
  if (!URL.canParse(endpoint.baseUrl)) {
    return null;
  }
  // Anyone may read the list of models there.
  const path = new URL(endpoint.baseUrl).hostname === OPENROUTER_HOST ? 'key' : 'models';
  const query = new URLSearchParams(endpoint.query).toString();
  return {
    url: `${endpoint.baseUrl}/${path}${query === '' ? '' : `?${query}`}`,
    headers: { ...extra, ...(api_key !== null && { authorization: `Bearer ${api_key}` }) },
    model: endpoint.model,
  };
}

function verdict(
  { status, text }: { status: number; text: string },
  { url, model }: { url: string; model: string },
  api_key: string | null,
): ModelWarning | null {
  const body = parseJson(text);
  if (status < 200 || status >= 300) {
    return unverified(codeOf(status), `${status} ${reasonIn(body, status, api_key)}`.trim());
  }
  if (isAzure(url)) {
    // It lists what it offers, and not what its customer has made of it.
    return null;
  }
  const names = jsonList(body, 'data').flatMap((entry) => jsonText(entry, 'id') ?? []);
  const isWhole = names.length > 0 && jsonAt(body, 'has_more') !== true;
  return isWhole && !names.some((name) => isNameOf(name, model))
    ? unverified('unknown_model', `its server knows ${names.length} models, but none of the name ${model}`)
    : null;
}

function codeOf(status: number): ModelWarning['code'] {
  if (status === 401 || status === 403) {
    return 'unauthorized';
  }
  if (status === 429) {
    return 'rate_limited';
  }
  return status >= 500 ? 'unavailable' : 'rejected';
}

/** The sentence of the server, which may quote the key. */
function reasonIn(body: unknown, status: number, api_key: string | null): string {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  const said = [['error', 'message'], ['message'], ['detail'], ['error'], ['msg']]
    .map((path) => jsonText(first, ...path))
    .find((found) => found !== null);
  if (said === undefined || said === null) {
    return status === 404 ? 'it has no list of models there; check llm_base_url' : '';
  }
  const sentence = withoutSecret(said, api_key).trim().replaceAll(/\s+/g, ' ').replace(/\.$/, '');
  return sentence.length <= MAX_REASON ? sentence : `${sentence.slice(0, MAX_REASON - 1).toWellFormed()}…`;
}

/** Servers list `models/gemini-pro`, `qwen3:latest` and `claude-x-20260101` for what people call without these parts. */
function isNameOf(listed: string, model: string): boolean {
  const [one, other] = [listed, model].map((name) => name.toLowerCase().replace(/^models\//, ''));
  return (
    one === other ||
    one?.endsWith(`/${other}`) === true ||
    one?.startsWith(`${other?.replace(/-latest$/, '')}`) === true
  );
}

function unverified(code: ModelWarning['code'], reason: string): ModelWarning {
  return { code, detail: `The model was stored but not verified: ${reason}.` };
}

/** A model as settings and conversations name it. */
export interface NamedModel {
  model: string | null;
  /** Blank or null: the provider's own address. */
  base_url: string | null;
}

/** The provider of model names without one. */
const DEFAULT_PROVIDER = 'openai';

/**
 * Whether two models are on the same server, so that a key for one may be sent to the other. Without an address the
 * name implies the provider (`anthropic/x`). Where a model has no name either, only the addresses are compared.
 */
export function isSameModelServer(one: NamedModel, other: NamedModel): boolean {
  const [from, to] = [serverOf(one), serverOf(other)];
  return from === null || to === null ? originOf(one) === originOf(other) : from === to;
}

function serverOf(named: NamedModel): string | null {
  const origin = originOf(named);
  if (origin !== '') {
    return origin;
  }
  const model = named.model?.trim() ?? '';
  return model === '' ? null : (/^([^/]+)\/./.exec(model)?.[1] ?? DEFAULT_PROVIDER);
}

function originOf({ base_url }: NamedModel): string {
  const text = base_url?.trim() ?? '';
  return URL.canParse(text) ? new URL(text).origin : text;
}
