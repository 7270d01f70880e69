import {
  isJsonObject,
  type JsonObject,
  jsonAt,
  jsonList,
  jsonNumber,
  jsonText,
  parseJson,
} from '@slipway/common/json-access.js';
import { access, hostOf, isOpenAi, type ModelApi, modelEndpoint } from '@slipway/common/model-endpoint.js';

type Endpoint = Exclude<ReturnType<typeof modelEndpoint>, { problem: string }>;

/** A model with its key, in clear, and the parameters that bear on how it is asked. */
export interface TriedModel {
  model: string;
  base_url: string | null;
  api_key: string | null;
  api: ModelApi | null;
  headers: Readonly<Record<string, string>>;
}

/** What a trial asks; each is answered in some words. */
export interface Question {
  text: string;
  system?: string;
  withTool?: boolean;
  image?: string;
}

export interface Reply {
  isStream: boolean;
  text: string;
  /** Names of tools that the model called by itself. */
  calls: string[];
  /** USD, as the provider says. */
  cost: number | null;
}

/** Six requests of it stay below 10,000 tokens; a model that reasons needs some before its answer. */
const MAX_TOKENS = 1_000;
const ANTHROPIC_URL = 'https://api.anthropic.com/v1';
const TOOL = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
};

/** The request in the form that the model's address speaks. */
export function requestFor(
  tried: TriedModel,
  endpoint: Endpoint,
  question: Question,
): { url: string; headers: Record<string, string>; body: string } {
  const { api_key, headers: extra } = tried;
  if (endpoint.api === 'anthropic') {
    const isOwn = endpoint.baseUrl === null || hostOf(endpoint.baseUrl) === hostOf(ANTHROPIC_URL);
    return {
      url: `${endpoint.baseUrl ?? ANTHROPIC_URL}/messages`,
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        ...(api_key !== null && {
          'x-api-key': api_key,
          ...(!isOwn && { authorization: `Bearer ${api_key}` }),
        }),
        ...extra,
      },
      body: JSON.stringify({ model: endpoint.model, stream: true, ...anthropicBody(question) }),
    };
  }
  const { query, key } = access(endpoint, api_key, null);
  const search = new URLSearchParams(query).toString();
  return {
    url: `${endpoint.baseUrl}/chat/completions${search && `?${search}`}`,
    headers: { 'content-type': 'application/json', ...key, ...extra },
    body: JSON.stringify({
      model: endpoint.model,
      stream: true,
      stream_options: { include_usage: true },
      [isOpenAi(endpoint.baseUrl) ? 'max_completion_tokens' : 'max_tokens']: MAX_TOKENS,
      ...openAiBody(question),
    }),
  };
}

function openAiBody({ text, system, withTool, image }: Question): JsonObject {
  const content =
    image === undefined
      ? text
      : [
          { type: 'text', text },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } },
        ];
  return {
    messages: [
      ...(system === undefined ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content },
    ],
    ...(withTool === true && { tools: [{ type: 'function', function: TOOL }] }),
  };
}

function anthropicBody({ text, system, withTool, image }: Question): JsonObject {
  const { parameters: input_schema, ...tool } = TOOL;
  const source = { type: 'base64', media_type: 'image/png', data: image };
  return {
    max_tokens: MAX_TOKENS,
    ...(system !== undefined && { system }),
    messages: [
      {
        role: 'user',
        content: [...(image === undefined ? [] : [{ type: 'image', source }]), { type: 'text', text }],
      },
    ],
    ...(withTool === true && { tools: [{ ...tool, input_schema }] }),
  };
}

/** More than a thousand tokens come in: an event has three at most. */
const MAX_LINES = 10_000;
const DATA = 'data:';

/** Of a stream, or of an answer in one piece; null: it is no answer of a model. */
export function readReply(body: string): Reply | null {
  const events = body.split('\n', MAX_LINES).filter((line) => line.startsWith(DATA));
  const chunks = events.map((line) => parseJson(line.slice(DATA.length)));
  const isStream = chunks.length > 0;
  const parts = isStream ? chunks : [parseJson(body)];
  const isAnswer = parts.some(
    (part) =>
      isJsonObject(part) && ['choices', 'content', 'content_block', 'delta'].some((name) => name in part),
  );
  const spoken = parts.flatMap((part) => {
    const choice = jsonList(part, 'choices')[0];
    return [
      jsonAt(choice, 'delta'),
      jsonAt(choice, 'message'),
      jsonAt(part, 'delta'),
      ...jsonList(part, 'content'),
    ];
  });
  const calls = [
    ...spoken.flatMap((each) => [
      ...jsonList(each, 'tool_calls').map((call) => jsonText(call, 'function', 'name')),
      jsonText(each, 'type') === 'tool_use' ? jsonText(each, 'name') : null,
    ]),
    ...parts.map((part) => jsonText(part, 'content_block', 'name')),
  ].filter((name): name is string => name !== null && name !== '');
  const costs = parts.map((part) => jsonNumber(part, 'usage', 'cost')).filter((cost) => cost !== null);
  return isAnswer
    ? {
        isStream,
        text: spoken.map((each) => jsonText(each, 'content') ?? jsonText(each, 'text') ?? '').join(''),
        calls,
        cost: costs.at(-1) ?? null,
      }
    : null;
}
