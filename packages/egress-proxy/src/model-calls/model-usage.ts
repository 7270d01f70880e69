import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { parseJson } from '@slipway/common/json-access.js';
import { cleanText } from '@slipway/common/well-formed-text.js';
import { JsonMembers } from './json-members.js';
import { canonicalPath } from '../target.js';

/** Tokens of one call. Those from and into the provider's cache are among `input`. */
export interface CallUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  /** What the provider charges, in USD; null where it does not say. */
  cost: number | null;
  /** The model that answered; null where it does not say. */
  model: string | null;
}

/** More than this is read of no answer: a host may stream without end. */
const MAX_READ_BYTES = 64 * 1024 * 1024;
/** Names are counted by so much of them. */
const MAX_MODEL = 200;
const NEWLINE = 0x0a;
const DATA = Buffer.from('data:');
const USAGE = Buffer.from('"usage"');
const METADATA = Buffer.from('"usageMetadata"');
/** By then a stream has said which model answers. */
const NAMING_LINES = 20;

/** Of OpenAI's two forms and Anthropic's, where answers or events have them. */
const USAGE_PATHS = ['usage', 'message.usage', 'response.usage', 'usageMetadata'];
const MODEL_PATHS = ['model', 'message.model', 'response.model', 'modelVersion'];
const WANTED: ReadonlySet<string> = new Set([...USAGE_PATHS, ...MODEL_PATHS]);

/** The last part of the paths of model calls; Gemini has the action behind a colon. */
const CALLS =
  /\/(?:chat\/completions|completions|responses|messages|embeddings)\/?$|:(?:streamG|g)enerateContent$/i;

const CHAT = /\/chat\/completions\/?$/i;

/** Whether a request is a call of a model, by its path, in whatever spelling a server may take for that one. */
export function isModelCall(method: string, path: string): boolean {
  return method === 'POST' && CALLS.test(plainPath(path));
}

/** Whether a call is one of OpenAI's chat completions, whose streams tell usage only where they are asked. */
export function isChatCall(path: string): boolean {
  return CHAT.test(plainPath(path));
}

export function isEventStream({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return /^text\/event-stream\b/i.test(headers['content-type'] ?? '');
}

function plainPath(path: string): string {
  const plain = URL.parse(`http://host${path}`)?.pathname.replaceAll(/\/{2,}/g, '/') ?? path;
  return canonicalPath(plain) ?? plain;
}

const count = z.number().int().min(0).max(1_000_000_000).optional().catch(undefined);
const details = z.object({ cached_tokens: count, cache_write_tokens: count }).optional().catch(undefined);
const usageSchema = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: details,
  /** DeepSeek. */
  prompt_cache_hit_tokens: count,
  input_tokens: count,
  output_tokens: count,
  input_tokens_details: details,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  promptTokenCount: count,
  candidatesTokenCount: count,
  thoughtsTokenCount: count,
  toolUsePromptTokenCount: count,
  cachedContentTokenCount: count,
  /** OpenRouter, in credits of one USD. */
  cost: z.number().min(0).max(1_000_000).optional().catch(undefined),
});
type Said = z.infer<typeof usageSchema>;

const ASKED = 'model';

/** The model that a request names in its body, read as it streams by. */
export class AskedModelReader {
  private readonly members = new JsonMembers(new Set([ASKED]), true);
  private left = MAX_READ_BYTES;

  push(chunk: Buffer): void {
    this.left -= chunk.length;
    if (this.left >= 0) {
      this.members.write(chunk);
    }
  }

  /** Null where it names none, as where its body is compressed. */
  get model(): string | null {
    return nameOf(valueAt(this.members.found, ASKED));
  }
}

/**
 * What the answer of a model says about tokens, read as it streams by: a JSON text, or server-sent events. It keeps no more of it than these
 * few members.
 */
export class ModelUsageReader {
  private members = new JsonMembers(WANTED);
  private said: Said = {};
  private model: string | null = null;
  private left = MAX_READ_BYTES;
  private lines = 0;
  /** How much of `data:` the line has begun with; null: it has begun with something else. */
  private matched: number | null = 0;

  constructor(private readonly isStream: boolean) {}

  push(chunk: Buffer): void {
    this.left -= chunk.length;
    if (this.left < 0) {
      return;
    }
    if (!this.isStream) {
      this.members.write(chunk);
      return;
    }
    let from = 0;
    while (from < chunk.length) {
      const end = chunk.indexOf(NEWLINE, from);
      if (end >= 0 && this.matched === 0 && !this.mayTell(chunk.subarray(from, end))) {
        from = end + 1;
        continue;
      }
      this.readLine(chunk.subarray(from, end < 0 ? chunk.length : end));
      if (end < 0) {
        return;
      }
      this.note();
      this.matched = 0;
      from = end + 1;
    }
  }

  /** Null where it has said nothing. */
  end(): CallUsage | null {
    this.note();
    const { said } = this;
    const input = said.prompt_tokens ?? said.input_tokens ?? said.promptTokenCount;
    const output = said.completion_tokens ?? said.output_tokens ?? said.candidatesTokenCount;
    if (input === undefined && output === undefined) {
      return null;
    }
    const parts = said.prompt_tokens_details ?? said.input_tokens_details;
    const besides = (said.cache_read_input_tokens ?? 0) + (said.cache_creation_input_tokens ?? 0);
    const total =
      (input ?? 0) + (said.toolUsePromptTokenCount ?? 0) + (said.prompt_tokens === undefined ? besides : 0);
    const cacheRead =
      said.cache_read_input_tokens ??
      parts?.cached_tokens ??
      said.prompt_cache_hit_tokens ??
      said.cachedContentTokenCount ??
      0;
    const cacheWrite = said.cache_creation_input_tokens ?? parts?.cache_write_tokens ?? 0;
    return {
      input: total,
      output: (output ?? 0) + (said.thoughtsTokenCount ?? 0),
      cacheRead: Math.min(cacheRead, total),
      cacheWrite: Math.min(cacheWrite, total - Math.min(cacheRead, total)),
      cost: said.cost ?? null,
      model: this.model,
    };
  }

  /** Most events tell nothing, and are many: looking for a few bytes is thirty times as fast as reading them. */
  private mayTell(line: Buffer): boolean {
    this.lines += 1;
    const mayName = this.model === null && this.lines <= NAMING_LINES;
    return mayName || line.includes(METADATA) || hasObject(line, USAGE);
  }

  private readLine(part: Buffer): void {
    let rest = part;
    if (this.matched !== null && this.matched < DATA.length) {
      const wanted = DATA.subarray(this.matched, this.matched + rest.length);
      if (!rest.subarray(0, wanted.length).equals(wanted)) {
        this.matched = null;
        return;
      }
      this.matched += wanted.length;
      rest = rest.subarray(wanted.length);
    }
    if (this.matched !== null) {
      this.members.write(rest);
    }
  }

  /** Later counts stand for earlier ones: they are those of the whole call so far. */
  private note(): void {
    const { found } = this.members;
    for (const path of USAGE_PATHS) {
      const given = valueAt(found, path);
      if (given !== null) {
        Object.assign(this.said, definedOf(usageSchema.safeParse(given).data ?? {}));
      }
    }
    for (const path of MODEL_PATHS) {
      this.model = nameOf(valueAt(found, path)) ?? this.model;
    }
    this.members = new JsonMembers(WANTED);
  }
}

/** Whether a member of this name may be an object there. */
function hasObject(line: Buffer, name: Buffer): boolean {
  for (let at = line.indexOf(name); at >= 0; at = line.indexOf(name, at + 1)) {
    if (/^\s*:\s*\{/.test(line.toString('latin1', at + name.length, at + name.length + 16))) {
      return true;
    }
  }
  return false;
}

function valueAt(found: ReadonlyMap<string, string>, path: string): unknown {
  const text = found.get(path);
  return text === undefined ? null : parseJson(text);
}

/** The service refuses a report with NUL or half a character, and with it what all other sandboxes asked for. */
function nameOf(model: unknown): string | null {
  return typeof model === 'string' && model !== '' ? cleanText(model.slice(0, MAX_MODEL)) : null;
}

function definedOf(said: Said): Said {
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
}
