import { Ajv2020 } from 'ajv/dist/2020.js';
import { jsonAt, jsonList, jsonText, parseJson } from '@slipway/common/json-access.js';

/*
 * What model servers refuse with 400, as their documents and error messages say. Written from those alone, so that tests
 * may compare our requests with it.
 */

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const ANTHROPIC_ID = /^[a-zA-Z0-9_-]+$/;
const ANTHROPIC_PROPERTY = /^[a-zA-Z0-9_.-]{1,64}$/;
const MAX_OPENAI_ID = 40;
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const isMetaValid = new Ajv2020({ strict: false, logger: false });

/** What OpenAI's Chat Completions refuse in a body, or null. */
export function openAiRefusal(body: unknown): string | null {
  const messages = jsonList(body, 'messages');
  return first([
    textProblem(body),
    messages.length === 0 ? 'messages: is too short' : null,
    jsonList(body, 'tools').length > 128 ? "Invalid 'tools': array too long." : null,
    ...messages.map((message, index) => at(`messages[${index}]`, openAiMessageProblem(message))),
    openAiOrderProblem(messages),
    ...jsonList(body, 'tools').map((tool, index) =>
      at(`tools[${index}].function`, toolProblem(jsonAt(tool, 'function'), 'parameters')),
    ),
    duplicateNames(jsonList(body, 'tools').map((tool) => jsonText(tool, 'function', 'name'))),
  ]);
}

function openAiMessageProblem(message: unknown): string | null {
  const role = jsonText(message, 'role');
  const content = jsonAt(message, 'content');
  const parts = Array.isArray(content) ? content : [];
  const callList = jsonList(message, 'tool_calls');
  if (role === null || !['system', 'user', 'assistant', 'tool'].includes(role)) {
    return 'role: unknown';
  }
  if (role === 'user' && Array.isArray(content) && content.length === 0) {
    return 'content: an empty list';
  }
  const isMissing = content === null || content === undefined;
  if (isMissing && (role !== 'assistant' || callList.length === 0)) {
    return 'content: expected a string, got null';
  }
  if (jsonAt(message, 'tool_calls') !== undefined && callList.length === 0) {
    return 'tool_calls: an empty list';
  }
  return first([
    ...parts.map((part: unknown) => openAiPartProblem(part)),
    ...callList.map((call) => openAiCallProblem(call)),
    duplicateNames(callList.map((call) => jsonText(call, 'id'))),
  ]);
}

function openAiPartProblem(part: unknown): string | null {
  if (jsonText(part, 'type') === 'text') {
    return typeof jsonAt(part, 'text') === 'string' ? null : 'text: missing';
  }
  const url = jsonText(part, 'image_url', 'url') ?? '';
  return url.startsWith('data:')
    ? dataUrlProblem(url)
    : /^https?:\/\//.test(url)
      ? null
      : 'image_url: invalid';
}

function openAiCallProblem(call: unknown): string | null {
  const id = jsonText(call, 'id') ?? '';
  const name = jsonText(call, 'function', 'name') ?? '';
  const args = parseJson(String(jsonAt(call, 'function', 'arguments')));
  return first([
    id === '' || id.length > MAX_OPENAI_ID ? `tool_calls.id: string too long or empty: ${id}` : null,
    TOOL_NAME.test(name) ? null : `tool_calls.function.name: does not match the pattern: ${name}`,
    typeof args === 'object' && args !== null && !Array.isArray(args)
      ? null
      : 'tool_calls.function.arguments: no JSON object',
  ]);
}

/** Each call is answered once, by the messages right behind it. */
function openAiOrderProblem(messages: readonly unknown[]): string | null {
  let open = new Set<string | null>();
  for (const [index, message] of messages.entries()) {
    if (jsonText(message, 'role') === 'tool') {
      if (!open.delete(jsonText(message, 'tool_call_id'))) {
        return `messages[${index}]: role 'tool' must be a response to a preceding message with 'tool_calls'`;
      }
    } else if (open.size > 0) {
      return `messages[${index}]: tool_call_ids did not have response messages: ${[...open].join()}`;
    } else {
      open = new Set(jsonList(message, 'tool_calls').map((call) => jsonText(call, 'id')));
    }
  }
  return open.size > 0 ? `tool_call_ids did not have response messages: ${[...open].join()}` : null;
}

/** What Google's and servers with strict chat templates refuse, though they speak OpenAI's API, or null. */
export function compatibleRefusal(body: unknown): string | null {
  const tools = jsonList(body, 'tools');
  const messages = jsonList(body, 'messages').map((message) => jsonText(message, 'role'));
  const turns = messages.filter((role) => role !== 'system' && role !== 'tool');
  return first([
    ...tools.map((tool) => schemaProblem(jsonAt(tool, 'function', 'parameters'), ['$ref', '$schema'])),
    ...tools.map((tool) => typeListProblem(jsonAt(tool, 'function', 'parameters'))),
    turns[0] === 'user' ? null : 'the first message must be from the user',
    messages.at(-1) === 'assistant' ? 'the last message must not be from the assistant' : null,
  ]);
}

/** What Mistral's refuses besides, or null. */
export function mistralRefusal(body: unknown): string | null {
  const messages = jsonList(body, 'messages');
  const ids = messages.flatMap((message) =>
    jsonList(message, 'tool_calls').map((call) => jsonText(call, 'id')),
  );
  const roles = messages.map((message) => jsonText(message, 'role'));
  return first([
    ids.every((id) => /^[a-zA-Z0-9]{9}$/.test(id ?? ''))
      ? null
      : 'Tool call id must be a-z, A-Z, 0-9, with a length of 9.',
    roles.some((role, index) => role !== 'tool' && role === roles[index - 1]) ? 'roles must alternate' : null,
    roles.some((role, index) => role === 'user' && roles[index - 1] === 'tool')
      ? "Unexpected role 'user' after role 'tool'"
      : null,
  ]);
}

/** What Anthropic's Messages API refuses in a body, or null. */
export function anthropicRefusal(body: unknown): string | null {
  const messages = jsonList(body, 'messages');
  return first([
    textProblem(body),
    messages.length === 0 ? 'messages: at least one message is required' : null,
    jsonText(messages[0], 'role') === 'user' ? null : 'messages: first message must use the "user" role',
    jsonText(messages.at(-1), 'role') === 'user'
      ? null
      : 'This model does not support assistant message prefill. The conversation must end with a user message.',
    ...jsonList(body, 'system').map((block) => at('system', anthropicBlockProblem(block))),
    ...messages.map((message, index) => at(`messages.${index}`, anthropicMessageProblem(message))),
    anthropicOrderProblem(messages),
    ...jsonList(body, 'tools').map((tool, index) =>
      at(`tools.${index}.custom`, toolProblem(tool, 'input_schema')),
    ),
    ...jsonList(body, 'tools').flatMap((tool) =>
      Object.keys(jsonAt(tool, 'input_schema', 'properties') ?? {}).map((name) =>
        ANTHROPIC_PROPERTY.test(name) ? null : `tools: Property keys should match pattern: ${name}`,
      ),
    ),
    duplicateNames(jsonList(body, 'tools').map((tool) => jsonText(tool, 'name'))),
  ]);
}

function anthropicMessageProblem(message: unknown): string | null {
  const content = jsonAt(message, 'content');
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  if (!Array.isArray(blocks) || blocks.length === 0) {
    return 'all messages must have non-empty content';
  }
  if (blocks.every((block: unknown) => /thinking/.test(jsonText(block, 'type') ?? ''))) {
    return 'a message must have more than thinking';
  }
  return first(blocks.map((block: unknown) => anthropicBlockProblem(block)));
}

function anthropicBlockProblem(block: unknown): string | null {
  const type = jsonText(block, 'type');
  switch (type) {
    case 'text':
      return /\S/.test(jsonText(block, 'text') ?? '')
        ? null
        : 'text content blocks must contain non-whitespace text';
    case 'thinking':
      return jsonText(block, 'signature') === null ? 'thinking.signature: Field required' : null;
    case 'redacted_thinking':
      return jsonText(block, 'data') === null ? 'redacted_thinking.data: Field required' : null;
    case 'image':
      return anthropicImageProblem(jsonAt(block, 'source'));
    case 'tool_use': {
      const input = jsonAt(block, 'input');
      return first([
        ANTHROPIC_ID.test(jsonText(block, 'id') ?? '') ? null : 'tool_use.id: String should match pattern',
        TOOL_NAME.test(jsonText(block, 'name') ?? '') ? null : 'tool_use.name: String should match pattern',
        typeof input === 'object' && input !== null && !Array.isArray(input)
          ? null
          : 'tool_use.input: Input should be a valid dictionary',
      ]);
    }
    case 'tool_result': {
      const content = jsonAt(block, 'content');
      return first([
        ANTHROPIC_ID.test(jsonText(block, 'tool_use_id') ?? '')
          ? null
          : 'tool_result.tool_use_id: String should match pattern',
        ...(Array.isArray(content) ? content : []).map((part: unknown) => anthropicBlockProblem(part)),
      ]);
    }
    default:
      return `Input tag '${type}' found using 'type' does not match any of the expected tags`;
  }
}

function anthropicImageProblem(source: unknown): string | null {
  if (jsonText(source, 'type') === 'url') {
    return (jsonText(source, 'url') ?? '').startsWith('https://') ? null : 'Only HTTPS URLs are supported.';
  }
  return dataUrlProblem(`data:${jsonText(source, 'media_type')};base64,${jsonText(source, 'data') ?? ''}`);
}

/** Each use has exactly one result at the beginning of the next message; roles alternate. */
function anthropicOrderProblem(messages: readonly unknown[]): string | null {
  const seen = new Set<string | null>();
  let open: (string | null)[] = [];
  let lastRole: string | null = null;
  for (const [index, message] of messages.entries()) {
    const blocks = jsonList(message, 'content');
    const results = blocks.filter((block) => jsonText(block, 'type') === 'tool_result');
    const ids = results.map((block) => jsonText(block, 'tool_use_id'));
    if (jsonText(message, 'role') === lastRole) {
      return `messages.${index}: roles must alternate`;
    }
    if (ids.length !== open.length || open.some((id) => ids.filter((other) => other === id).length !== 1)) {
      return `messages.${index}: \`tool_use\` ids must each have one \`tool_result\` block right after`;
    }
    if (results.some((block, position) => blocks[position] !== block)) {
      return `messages.${index}: tool_result blocks must come first`;
    }
    open = blocks
      .filter((block) => jsonText(block, 'type') === 'tool_use')
      .map((block) => jsonText(block, 'id'));
    if (open.some((id) => seen.has(id)) || new Set(open).size < open.length) {
      return `messages.${index}: \`tool_use\` ids must be unique`;
    }
    open.forEach((id) => seen.add(id));
    lastRole = jsonText(message, 'role');
  }
  return open.length > 0 ? '`tool_use` ids were found without `tool_result` blocks immediately after' : null;
}

export function toolProblem(tool: unknown, schemaMember: string): string | null {
  const schema = jsonAt(tool, schemaMember);
  return first([
    TOOL_NAME.test(jsonText(tool, 'name') ?? '') ? null : `name: does not match the pattern`,
    jsonAt(schema, 'type') === 'object' ? null : `${schemaMember}.type: must be "object"`,
    ...['anyOf', 'oneOf', 'allOf', 'enum', 'not', '$ref'].map((keyword) =>
      jsonAt(schema, keyword) === undefined
        ? null
        : `${schemaMember}: must not have ${keyword} at the top level`,
    ),
    isMetaValid.validateSchema(schema ?? {}) === true ? null : `${schemaMember}: JSON schema is invalid`,
    schemaProblem(schema),
  ]);
}

/** `type` is no list in Google's schemas, and null no type. */
function typeListProblem(schema: unknown): string | null {
  return first([
    Array.isArray(jsonAt(schema, 'type')) ? 'type: Proto field is not repeating, cannot start list.' : null,
    jsonAt(schema, 'type') === 'null' ? 'type: Invalid value' : null,
    ...innerSchemas(schema).map((part) => typeListProblem(part)),
  ]);
}

/** What Google's API refuses besides, or null. */
export function googleRefusal(body: unknown): string | null {
  return first(
    jsonList(body, 'tools').map((tool) => googleSchemaProblem(jsonAt(tool, 'function', 'parameters'))),
  );
}

const GOOGLE_FIELDS =
  /^(type|format|title|description|nullable|enum|(min|max)(Items|Properties|Length|imum)|properties|required|pattern|anyOf|items)$/;

function googleSchemaProblem(schema: unknown): string | null {
  const values = jsonAt(schema, 'enum');
  const format = jsonAt(schema, 'format') ?? 'date-time';
  return first([
    ...Object.keys(Object(schema)).map((name) =>
      GOOGLE_FIELDS.test(name) ? null : `Unknown name "${name}"`,
    ),
    Array.isArray(values) && !values.every((value) => typeof value === 'string' && value !== '')
      ? 'enum: only texts that are not empty'
      : null,
    format === 'date-time' || format === 'enum' ? null : "format: only 'enum' and 'date-time' are supported",
    ...innerSchemas(schema).map((part) => googleSchemaProblem(part)),
  ]);
}

function innerSchemas(schema: unknown): unknown[] {
  return [
    ...Object.values(jsonAt(schema, 'properties') ?? {}),
    jsonAt(schema, 'items'),
    jsonAt(schema, 'additionalProperties'),
    ...['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => jsonList(schema, keyword)),
  ].filter((part) => typeof part === 'object' && part !== null);
}

/** What OpenAI's validator refuses at any depth. */
function schemaProblem(schema: unknown, unknown: readonly string[] = []): string | null {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    return null;
  }
  const types = [jsonAt(schema, 'type')].flat();
  return first([
    types.includes('object') && jsonAt(schema, 'properties') === undefined
      ? 'object schema missing properties'
      : null,
    types.includes('array') && jsonAt(schema, 'items') === undefined ? 'array schema missing items' : null,
    ...unknown.map((keyword) => (Object.hasOwn(schema, keyword) ? `unknown name ${keyword}` : null)),
    ...innerSchemas(schema).map((part) => schemaProblem(part, unknown)),
  ]);
}

function dataUrlProblem(url: string): string | null {
  const [, type = '', data = ''] = /^data:([^;,]*);base64,(.*)$/.exec(url) ?? [];
  if (!IMAGE_TYPES.includes(type)) {
    return `image: unsupported media type ${type}`;
  }
  const bytes = Buffer.from(data, 'base64');
  if (data === '' || bytes.toString('base64') !== data) {
    return 'image: invalid base64';
  }
  if (bytes.length > 5 * 1024 * 1024) {
    return 'image: exceeds 5 MB';
  }
  const begins = {
    'image/png': '89504e47',
    'image/jpeg': 'ffd8ff',
    'image/gif': '47494638',
    'image/webp': '52494646',
  };
  const beginning = new Map(Object.entries(begins)).get(type) ?? '?';
  return bytes.toString('hex').startsWith(beginning) ? null : `image: does not match the media type ${type}`;
}

export function textProblem(body: unknown): string | null {
  let problem: string | null = null;
  JSON.stringify(body, (name, value: unknown) => {
    const texts = typeof value === 'string' ? [name, value] : [name];
    if (texts.some((text) => !text.isWellFormed())) {
      problem = 'The request body is not valid JSON: no low surrogate in string';
    }
    if (texts.some((text) => text.includes('\0'))) {
      problem = 'The request body has a NUL character';
    }
    return value;
  });
  return problem;
}

export function duplicateNames(names: readonly (string | null)[]): string | null {
  return new Set(names).size < names.length ? 'names and ids must be unique' : null;
}

export function first(problems: readonly (string | null)[]): string | null {
  return problems.find((problem) => problem !== null) ?? null;
}

export function at(place: string, problem: string | null): string | null {
  return problem === null ? null : `${place}: ${problem}`;
}
