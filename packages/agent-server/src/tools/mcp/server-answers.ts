import type { Content } from '@slipway/agent-protocol/events.js';
import { parseJson, isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { imageType, isBase64 } from '@slipway/common/well-formed-text.js';
import { clipText, MAX_TOOL_TEXT } from '../../clipped-text.js';
import { cleanToolName } from '../tool.js';

// What tool servers send is read member by member: what is wrong in one place must not hide the rest.

const VERSION = { jsonrpc: '2.0' } as const;
const INTERNAL_ERROR = -32_603;

export type RepairedMessage = typeof VERSION &
  (
    | { id?: string | number; method: string; params?: JsonObject }
    | { id: string | number; result: JsonObject }
    | { id: string | number; error: { code: number; message: string; data?: unknown } }
  );

/** The messages in a text of JSON, which may be a list of them; none where it is something else. */
export function repairedMessages(text: string, asked?: string | number): RepairedMessage[] {
  const value = parseJson(text);
  return (Array.isArray(value) ? value : [value]).flatMap(
    (each: unknown) => repairedMessage(each, asked) ?? [],
  );
}

/**
 * A tool server's message as the client's strict parser wants it; null when it is none. Servers leave out the
 * version, write null for what is absent or answer with a text; the client would ignore such an answer and wait.
 */
export function repairedMessage(value: unknown, asked?: string | number): RepairedMessage | null {
  if (!isJsonObject(value)) {
    return null;
  }
  const { method, params, result, error } = value;
  const id = isId(value['id']) ? value['id'] : undefined;
  if (typeof method === 'string') {
    return {
      ...VERSION,
      ...(id !== undefined && { id }),
      method,
      ...(isJsonObject(params) && { params: withoutNulls(params) }),
    };
  }
  const answered = id ?? asked;
  if (answered === undefined || (result === undefined && error === undefined)) {
    return null;
  }
  if (error !== undefined && error !== null) {
    return { ...VERSION, id: answered, error: toError(error) };
  }
  if (isJsonObject(result)) {
    return { ...VERSION, id: answered, result: repairedResult(result) };
  }
  const message = `the tool server answered with ${JSON.stringify(result ?? null).slice(0, 200)}, not with an object`;
  return { ...VERSION, id: answered, error: { code: INTERNAL_ERROR, message } };
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || Number.isSafeInteger(value);
}

function toError(error: unknown): { code: number; message: string; data?: unknown } {
  const { code, message, data } = isJsonObject(error) ? error : { code: null, message: error, data: null };
  return {
    code: typeof code === 'number' && Number.isSafeInteger(code) ? code : INTERNAL_ERROR,
    message: typeof message === 'string' ? message : JSON.stringify(error),
    ...(data !== undefined && data !== null && { data }),
  };
}

/**
 * Below the first level nulls may be data, but not in what a server says about itself. Since 2026-07-28 the client
 * refuses a whole list for one tool, a whole result for one part: it gets none of them, and passes on what is `given`.
 */
function repairedResult(result: JsonObject): JsonObject {
  const given = withoutNulls(result);
  const { _meta: meta, capabilities } = given;
  return {
    resultType: 'complete',
    ...given,
    _meta: isJsonObject(meta) ? meta : undefined,
    ...(isJsonObject(capabilities) && { capabilities: withoutNullsBelow(capabilities) }),
    isError: undefined,
    nextCursor: undefined,
    content: [],
    tools: [],
    ttlMs: 0,
    cacheScope: 'private',
    given,
  };
}

function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, member]) => member !== null));
}

function withoutNullsBelow(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(withoutNulls(object)).map(([name, member]) => [
      name,
      isJsonObject(member) ? withoutNulls(member) : member,
    ]),
  );
}

const MAX_QUOTE = 80;
const MAX_PROBLEMS = 10;
/** Stands for every tool in a list of allowed ones, as in the configurations of others. */
const ALL = '*';

export interface ListedTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

/** What can be used of a list of tools, and a sentence about each tool that had to be repaired or left out. */
export interface ToolListing {
  tools: ListedTool[];
  problems: string[];
}

/** Reads each tool of a list by itself, so that a wrong one costs no other. Undefined `allowed`: all tools. */
export function readToolList(listed: readonly unknown[], allowed?: readonly string[]): ToolListing {
  const wanted = allowed === undefined || allowed.includes(ALL) ? null : new Set(allowed);
  const tools = new Map<string, ListedTool>();
  const problems: string[] = [];
  for (const [index, entry] of listed.entries()) {
    const { name, description, inputSchema } = isJsonObject(entry) ? entry : {};
    if (typeof name !== 'string' || name.trim() === '') {
      problems.push(`the entry ${index + 1} of its list was left out: it has no name`);
    } else if (wanted === null || wanted.has(name)) {
      if (tools.has(name)) {
        problems.push(`a second tool ${quoted(name)} was left out`);
      } else {
        tools.set(name, {
          name,
          description: typeof description === 'string' ? description : '',
          inputSchema: isJsonObject(inputSchema) ? inputSchema : { type: 'object', properties: {} },
        });
        if (cleanToolName(name) !== name) {
          problems.push(`the tool ${quoted(name)} is offered by a name that model servers accept`);
        }
        if (!isJsonObject(inputSchema)) {
          problems.push(`the tool ${quoted(name)} is offered without arguments: it has no valid inputSchema`);
        }
      }
    }
  }
  const missing = [...(wanted ?? [])].filter((name) => !tools.has(name));
  if (missing.length > 0) {
    problems.push(`it has no tool ${missing.map(quoted).join(', ')}, which the settings allow`);
  }
  return { tools: [...tools.values()], problems };
}

export function problemsText(problems: readonly string[]): string | null {
  if (problems.length === 0) {
    return null;
  }
  const more = problems.length - MAX_PROBLEMS;
  return [...problems.slice(0, MAX_PROBLEMS), ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

function quoted(name: string): string {
  const text = name.toWellFormed();
  return `“${text.length > MAX_QUOTE ? `${text.slice(0, MAX_QUOTE).toWellFormed()}…` : text}”`;
}

const MAX_PARTS = 50;
/** Characters in base64. Larger images are useless to the model, and the log would keep them forever. */
const MAX_IMAGE = 5_000_000;
/** Characters in base64, of all images of a result, which have to fit into an event. */
const MAX_IMAGES = 7_000_000;
/** What a tool has returned, for the log and the model: texts and images; a note in place of what is neither. */
export function toContent(result: JsonObject): Content[] {
  const { content, structuredContent, toolResult } = result;
  const parts = Array.isArray(content) ? content : content === undefined || content === null ? [] : [content];
  const shown = parts.slice(0, MAX_PARTS).map(toPart);
  if (parts.length > MAX_PARTS) {
    shown.push(note(`${parts.length - MAX_PARTS} more parts were left out`));
  }
  const structured = structuredContent ?? toolResult;
  if (structured !== undefined && shown.every(isBlank)) {
    shown.push({ type: 'text', text: JSON.stringify(structured) });
  }
  return withinLimits(shown.filter((part) => !isBlank(part)));
}

function toPart(part: unknown): Content {
  if (typeof part === 'string') {
    return { type: 'text', text: part };
  }
  const { type, text, data, mimeType, resource, uri, ...rest } = isJsonObject(part) ? part : {};
  if (typeof text === 'string') {
    return { type: 'text', text };
  }
  if (type === 'image' && typeof data === 'string') {
    return toImage(data) ?? note(`an image was left out: ${nameOf(mimeType)} is no image that models take`);
  }
  if (type === 'audio' && typeof data === 'string') {
    return note(`a recording (${nameOf(mimeType)}, ${byteCount(data)} bytes) was left out`);
  }
  if (type === 'resource' && isJsonObject(resource)) {
    return fromResource(resource);
  }
  if (type === 'resource_link' && typeof uri === 'string') {
    const about = ['title', 'name', 'description']
      .map((member) => rest[member])
      .filter((value) => typeof value === 'string' && value !== '');
    return { type: 'text', text: [`Resource ${uri} (${nameOf(mimeType)})`, ...about].join('\n') };
  }
  return { type: 'text', text: JSON.stringify(part) };
}

function fromResource({ uri, mimeType, text, blob }: JsonObject): Content {
  const address = typeof uri === 'string' ? uri : 'without address';
  if (typeof text === 'string') {
    return { type: 'text', text: `Resource ${address}:\n${text}` };
  }
  if (typeof blob !== 'string') {
    return note(`the resource ${address} is empty`);
  }
  return (
    toImage(blob) ??
    note(`the resource ${address} (${nameOf(mimeType)}, ${byteCount(blob)} bytes) was left out`)
  );
}

/** @returns null when it is no image that models take */
function toImage(data: string): Content | null {
  const base64 = data
    .replace(/^data:[^,]{0,100},/, '')
    .replaceAll(/\s/g, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/');
  const type = imageType(base64);
  return type === null || !isBase64(base64)
    ? null
    : { type: 'image', image_urls: [`data:${type};base64,${base64}`] };
}

function withinLimits(parts: readonly Content[]): Content[] {
  let text = MAX_TOOL_TEXT;
  let images = MAX_IMAGES;
  return parts.map((part): Content => {
    if (part.type === 'text') {
      const kept = clipText(part.text.toWellFormed(), Math.max(text, 0));
      text -= part.text.length;
      return { type: 'text', text: kept };
    }
    const size = part.image_urls.join('').length;
    if (size > Math.min(MAX_IMAGE, images)) {
      return note(`an image of ${size} characters is too large and was left out`);
    }
    images -= size;
    return part;
  });
}

function isBlank(part: Content): boolean {
  return part.type === 'text' && part.text.trim() === '';
}

function note(text: string): Content {
  return { type: 'text', text: `[${text}]` };
}

function nameOf(mimeType: unknown): string {
  return typeof mimeType === 'string' && mimeType !== '' ? mimeType.slice(0, 100) : 'no type given';
}

function byteCount(base64: string): number {
  return Math.floor((base64.length * 3) / 4);
}
