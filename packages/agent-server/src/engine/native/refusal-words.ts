import { isJsonObject, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';

export interface Refusal {
  /** The provider's sentence for the user, else the title of a page or the whole body. */
  reason: string;
  /** Codes, types and states, as providers nest them, in words: `context length exceeded`. */
  codes: readonly string[];
  text: string;
}

const CODE_MEMBERS = ['code', 'type', 'status', 'reason', 'error_code', 'param'];
const TEXT_MEMBERS = ['message', 'msg', 'detail', 'error', 'error_description'];
/** What OpenRouter says of every refusal; that of the model's provider stands in `raw`. */
const GENERIC = /^provider returned error$/i;
const MAX_DEPTH = 12;
/** Longer ones are pages, not reasons. */
const MAX_READ = 50_000;
const TITLE = /<title[^>]{0,200}>([^<]{0,300})/i;

export function readRefusal(body: string): Refusal {
  const codes: string[] = [];
  const texts: string[] = [];
  const parsed = parseJson(body);
  collect(parsed, codes, texts, 0);
  return {
    reason: texts.find((text) => !GENERIC.test(text)) ?? texts[0] ?? (pageTitle(body) || body.trim()),
    codes: codes.map(toWords),
    text: toWords(isJsonObject(parsed) || Array.isArray(parsed) ? texts.join('\n') : body),
  };
}

/** Returns null if it is no HTML page, and an empty text if the page has no title. */
export function pageTitle(body: string): string | null {
  return /^\s*<(!doctype|html|head|body|\?xml)/i.test(body)
    ? (TITLE.exec(body.slice(0, MAX_READ))?.[1] ?? '').replaceAll(/\s+/g, ' ').trim()
    : null;
}

/** OpenRouter and LiteLLM quote the provider's own JSON in a text. */
function collect(value: unknown, codes: string[], texts: string[], depth: number): void {
  if (depth > MAX_DEPTH) {
    return;
  }
  if (typeof value === 'string') {
    collect(quotedJson(value), codes, texts, depth + 1);
    return;
  }
  for (const [name, member] of membersOf(value)) {
    if (typeof member === 'string' && member.trim() !== '') {
      if (CODE_MEMBERS.includes(name)) {
        codes.push(member);
      }
      if (TEXT_MEMBERS.includes(name) || (name === 'raw' && quotedJson(member) === undefined)) {
        texts.push(member.trim());
      }
    }
    collect(member, codes, texts, depth + 1);
  }
}

function quotedJson(text: string): unknown {
  return /^\s*[[{]/.test(text) ? parseJson(text) : undefined;
}

function membersOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** `ContextWindowExceededError` and `context_length_exceeded` in words. */
function toWords(text: string): string {
  return text
    .slice(0, MAX_READ)
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replaceAll(/[_-]+/g, ' ')
    .toLowerCase();
}

const PROMPT = /\b(context|tokens?|prompts?|inputs?|history|conversation|sequence|length of the messages)\b/;
const LIMIT =
  /\b(lengths?|windows?|sizes?|limit(s|ed)?|maximum|max|maximal|capacity|budget|range|allowed|supports?|n ctx)\b|\d{4,}[^]{1,200}?\d{4,}/;
const EXCEEDED =
  /\b(exceed(s|ed|ing)?|too (long|large|big|many|much)|(longer|larger|greater|bigger|more|higher) than|over|beyond|overflow(s|ed)?|reached|reduce|shorten|truncate|fit|but|however|requested|should be)\b|>|must be (<|less|at most|below|under|smaller|shorter)/;
/** These words are enough without a limit. */
const TOO_LONG = /\btoo (long|large|big|many|much)\b/;
/** The second is of chat templates, when Ollama has left out so much that no message of the user is left. */
const CONTEXT_SIZE = /\bcontext (length|window|size|limit)\b|\bno user query found in messages\b/;
/** Limits of a period or of the answer say nothing of the prompt. */
const RATE =
  /\b(per|every|each) ?(min(ute)?|hour|day|second|month)\b|\b[tr]p[mdh]\b|\brate limit|\bquota|too many requests/;
const OUTPUT = /\b(max (completion |output |new )?tokens|completion tokens)\b/;
const REDUCE = /\b(request|prompt|input)\b.{0,40}\btoo large\b|\bmust be reduced\b/;

/** Read by words (of a prompt, of a limit, of exceeding it), as providers share neither status nor sentence. */
export function isContextFull(status: number, { codes, text }: Pick<Refusal, 'codes' | 'text'>): boolean {
  if (status === 413 || codes.some((code) => saysTooLong(code))) {
    return true;
  }
  return status === 429 ? REDUCE.test(text) : saysTooLong(text);
}

function saysTooLong(words: string): boolean {
  if (RATE.test(words) && !REDUCE.test(words)) {
    return false;
  }
  if (CONTEXT_SIZE.test(words)) {
    return true;
  }
  const isPrompt = PROMPT.test(words.replaceAll(new RegExp(OUTPUT, 'g'), ''));
  return isPrompt && EXCEEDED.test(words) && (LIMIT.test(words) || TOO_LONG.test(words));
}

const FINAL =
  /\b(schema|function parameters|api ?keys?|auth\w*|permission|polic(y|ies)|content ?filter|safety|model not found)\b/;

/** Whether a code names what a shorter history does not change: a schema, a key or a policy. */
export function isFinal({ codes }: Pick<Refusal, 'codes'>): boolean {
  return codes.some((code) => FINAL.test(code));
}

export function isFiltered({ codes }: Pick<Refusal, 'codes'>): boolean {
  return codes.some((code) =>
    /\b(content ?filter(ed)?|content policy|polic(y|ies) violation|safety)\b/.test(code),
  );
}

const NO_MONEY =
  /\b(insufficient (quota|balance|funds|credits?)|billing (hard )?limit|budget (has been )?exceeded|exceeded budget|(over|crossed) budget|credit balance is too low|all available credits|have any credits|spending limit|specified api usage limits|exceeded current quota error|arrearage)\b/;

/** The length that an answer may have for what credit is left (OpenRouter); 0 if it is not said. */
export function affordableTokens({ reason }: Pick<Refusal, 'reason'>): number {
  return Number(/\bcan only afford (\d{1,9})\b/.exec(reason)?.[1] ?? 0);
}

/** Whether an answer says that the account, or its budget at a gateway, is spent, which no pause changes. */
export function isOutOfMoney({ codes, text }: Pick<Refusal, 'codes' | 'text'>): boolean {
  return codes.some((code) => NO_MONEY.test(code) || /\bbilling\b/.test(code)) || NO_MONEY.test(text);
}

/** Whether the model has written a call that its server could not read: it may write a better one. */
export function isBrokenCall({ codes }: Pick<Refusal, 'codes'>): boolean {
  return codes.includes('tool use failed');
}

export function isWithoutTools({ text }: Pick<Refusal, 'text'>): boolean {
  return /\b(does|do|is) not support(ed)? (tools?|function calling|tool (use|calling))\b|support tool use|tool choice requires|`?tool (use|calling)`? is not supported/.test(
    text,
  );
}

/** Whether a model is offered by OpenAI's Responses API only: words of OpenAI, Azure, Copilot. */
export function wantsResponses({ text }: Pick<Refusal, 'text'>): boolean {
  return /\bv1\/responses\b|\bchat completion operation does not work\b|not accessible via the \/chat\/completions\b/.test(
    text,
  );
}

/** Words of OpenAI, Anthropic, Google, and of gateways that quote them. */
const UNREADABLE =
  /\binvalid encrypted content\b|\binvalid `?signature`? in `?thinking\b|\b(invalid|corrupted) thought signature\b|\bthought signature is (not valid|invalid)\b|\bthinking`? blocks\b.{0,80}\bcannot be modified\b/;

/** Whether reasoning that goes back, sealed or signed, cannot be read. */
export function isUnreadable({ codes, text }: Pick<Refusal, 'codes' | 'text'>): boolean {
  return [...codes, text].some((words) => UNREADABLE.test(words));
}

/** Whether a server lacks the address of an API, or Azure the API in a region, and not only the model. */
export function isNoAddress(status: number, { codes, text }: Pick<Refusal, 'codes' | 'text'>): boolean {
  return (
    (status === 404 || status === 405 || /\bresponses api is not enabled\b/.test(text)) &&
    !/\b(model not found|no such model|unknown model)\b|\bdeployment ?not ?found\b|\bmodel\b.{0,80}\bnot (exist|found)\b/.test(
      [...codes, text].join('\n'),
    )
  );
}

const REFUSED =
  /unsupported|n[o']t support|unknown|unrecogni[sz]ed|unexpected|not (?:allowed|permitted|available)|extra (?:field|input)|deprecated|incompatible|cannot both be|may only be|only the default|only \S+ is allowed|but found `tool_use`|tool_choice: input tag/i;
/** Names that stand in other sentences as well, and how refusals name them. */
const PLAIN_WORDS: ReadonlyMap<string, RegExp> = new Map([
  ['include', /encrypted[_ ]content/i],
  ['stream', /'stream'|"param":\s*"stream"/],
]);

/** Whether a member of a request is refused. A value that is out of bounds is not a parameter that is unknown. */
export function isRefused(text: string, parameter: string): boolean {
  // xAI names them as `reasoningEffort`.
  const name = parameter.replaceAll('_', '_?').replace('.', String.raw`\.`);
  const sign = PLAIN_WORDS.get(parameter) ?? new RegExp(`(?<![a-z_])${name}(?![a-z_])`, 'i');
  return REFUSED.test(text) && sign.test(text);
}

/** Whether the length that an answer may have is refused, also together with that of the prompt. */
export function isLimitRefused({ text }: Pick<Refusal, 'text'>): boolean {
  return OUTPUT.test(text) || /\b(output tokens|in the completion)\b/.test(text);
}

/** How many milliseconds an answer asks to wait, by its headers or its words; 0 if it does not say. */
export function namedPause(
  headers: Readonly<Record<string, string | undefined>>,
  body: string,
  now: number,
): number {
  const milliseconds = headers['retry-after-ms']?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(milliseconds)) {
    return Number(milliseconds);
  }
  return (
    retryAfter(headers['retry-after'], now) ||
    retryDelay(parseJson(body)) ||
    duration(PAUSE.exec(body.slice(0, MAX_READ))?.[1] ?? '')
  );
}

/** RFC 9110, 10.2.3: seconds or a date. Some providers write a unit. */
function retryAfter(header: string | undefined, now: number): number {
  const text = header?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text)) {
    return Number(text) * 1000;
  }
  const date = /^[A-Za-z]{3},|^\d{4}-/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? duration(text) : Math.max(0, date - now);
}

/** `google.rpc.RetryInfo` in `error.details`, and members of that name elsewhere. */
function retryDelay(value: unknown, depth = 0): number {
  if (depth > MAX_DEPTH || (typeof value !== 'object' && typeof value !== 'string') || value === null) {
    return 0;
  }
  if (typeof value === 'string') {
    return /^\s*[[{]/.test(value) ? retryDelay(parseJson(value), depth + 1) : 0;
  }
  for (const name of ['retryDelay', 'retry_delay', 'quotaResetDelay', 'retry_after', 'retryAfter']) {
    const text = jsonText(value, name);
    const seconds = jsonNumber(value, name) ?? jsonNumber(value, name, 'seconds');
    const found =
      text === null ? (seconds ?? 0) * 1000 : duration(/^\d+(\.\d+)?$/.test(text) ? `${text}s` : text);
    if (found > 0) {
      return found;
    }
  }
  for (const member of Object.values(value)) {
    const found = retryDelay(member, depth + 1);
    if (found > 0) {
      return found;
    }
  }
  return 0;
}

const UNITS: readonly [RegExp, number][] = [
  [/^(ms|msecs?|milliseconds?)$/, 1],
  [/^(s|secs?|seconds?)$/, 1_000],
  [/^(m|mins?|minutes?)$/, 60_000],
  [/^(h|hrs?|hours?)$/, 3_600_000],
  [/^(d|days?)$/, 86_400_000],
];
const AMOUNT = String.raw`\d{1,9}(?:\.\d{1,12})?\s{0,3}(?:ms|milliseconds?|msecs?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|[smhd])(?![a-z])`;
/** `retry in 12.5s`, `try again in 1m30s`, `retry after 20 seconds`, `will reset after 3h2m`, `wait 5 s`. */
const PAUSE = new RegExp(
  String.raw`\b(?:retry|again|wait|resets?|available|retrying)\b[^.\n\d]{0,40}?((?:${AMOUNT}(?:\s{0,3}(?:,|and)?\s{0,3})?)+)`,
  'i',
);

/** `1m30s`, `12.5 seconds`, `373.8ms`. */
function duration(text: string): number {
  let total = 0;
  for (const [, amount, unit = ''] of text
    .toLowerCase()
    .matchAll(/(\d{1,9}(?:\.\d{1,12})?)\s{0,3}([a-z]+)/g)) {
    total += Number(amount) * (UNITS.find(([pattern]) => pattern.test(unit))?.[1] ?? 0);
  }
  return Math.ceil(total);
}

/** How an answer ended: by itself, at the limit of its length or of the context, by a filter, a failure, or by us. */
export type AnswerEnding = 'complete' | 'cut' | 'full' | 'filtered' | 'broken' | 'endless';

const CUT = /^(length|max_?tokens|max_output_tokens|model_length)$/i;
const FILTERED =
  /^(content[_-]?filter(ed)?(:.*)?|refusal|safety|recitation|blocklist|prohibited_content|spii|sensitive|language|.*policy.*)$/i;
/** Reasons that Gemini, OpenRouter, DeepSeek, Z.ai and vLLM give, in this order. */
const BROKEN =
  /malformed[_ ](function|tool)[_ ]call|unexpected[_ ]tool[_ ]call|^(error|insufficient_system_resource|network_error|abort(ed)?)$/i;

export function answerEnding(unified: string, raw: string | undefined): AnswerEnding {
  if (raw === 'model_context_window_exceeded') {
    return 'full';
  }
  if (unified === 'length' || CUT.test(raw ?? '')) {
    return 'cut';
  }
  if (BROKEN.test(raw ?? '')) {
    return 'broken';
  }
  return unified === 'content-filter' || FILTERED.test(raw ?? '') ? 'filtered' : 'complete';
}
