import { unescape } from 'node:querystring';
import { unmaskableReason, MASK } from '@slipway/common/secret-mask.js';
import { CUT_MARK } from './clipped-text.js';
import { isJsonObject, type JsonObject, mapLeaves } from '@slipway/common/json-access.js';

export const HIDDEN = '<secret-hidden>';
/** Shorter fragments give nothing away, and many words end with them by chance. */
const MIN_FRAGMENT = 4;
/** Lines of keys and certificates are longer; each may appear without its neighbours, or behind a line number. */
const MIN_LINE_LENGTH = 16;
/** Members that hold names and ids of the protocol: a secret that happens to be `user` must not break an event. */
const PROTOCOL_MEMBERS = new Set([
  'id',
  'timestamp',
  'source',
  'kind',
  'role',
  'type',
  'origin',
  'security_risk',
  'rejection_source',
  'action_id',
  'tool_call_id',
  'llm_response_id',
  'forgotten_event_ids',
]);

/** Free JSON of a tool: no member in it belongs to the protocol. */
const FREE_JSON_MEMBERS = new Set(['data', 'raw_input', 'raw_output']);

/**
 * Replaces known secrets that are not too common, also in base64, URL-encoded or escaped as in JSON, single lines of
 * long ones, and the fragments of one on either side of a cut.
 */
export class SecretMasker {
  readonly #pattern: RegExp | null;
  readonly #forms: readonly string[];

  constructor(secrets: Iterable<string>) {
    this.#forms = [...new Set([...secrets].flatMap(formsOf))].toSorted((a, b) => b.length - a.length);
    this.#pattern =
      this.#forms.length === 0
        ? null
        : new RegExp(this.#forms.map((form) => escapePattern(form)).join('|'), 'g');
  }

  text(text: string): string {
    return this.#pattern === null ? text : this.#maskTornEnds(text.replace(this.#pattern, HIDDEN));
  }

  /** How many characters at the end of a text may be the beginning of a secret. */
  unfinishedLength(text: string): number {
    return this.#longestFragment(text, (form, length) => text.endsWith(form.slice(0, length)));
  }

  /** The beginning of a text that goes on, up to what may become a secret, and how long it is unmasked. */
  begun(text: string): { length: number; masked: string } {
    let length = text.length - this.unfinishedLength(text);
    for (const { index, 0: match } of this.#pattern === null ? [] : text.matchAll(this.#pattern)) {
      // What may be a beginning may be the end of another one.
      length = index < length && length < index + match.length ? index : length;
    }
    return { length, masked: this.text(text.slice(0, length)) };
  }

  value<T>(value: T): T {
    const masked = this.#pattern === null ? value : mapLeaves(value, (path, leaf) => this.#leaf(path, leaf));
    return isSameShape(masked, value) ? masked : value;
  }

  /** A cut may run through a secret; the pattern does not match the fragments that remain. */
  #maskTornEnds(text: string): string {
    const parts = text.split(CUT_MARK);
    return parts
      .map((part, index) => {
        if (index % 2 === 1) {
          return part;
        }
        const end = index < parts.length - 1 ? fragmentLength(this.unfinishedLength(part)) : 0;
        const start = index > 0 ? fragmentLength(this.#unstartedLength(part)) : 0;
        const kept = part.slice(start, Math.max(start, part.length - end));
        return `${start > 0 ? HIDDEN : ''}${kept}${end > 0 ? HIDDEN : ''}`;
      })
      .join('');
  }

  /** How many characters at the beginning of a text may be the end of a secret. */
  #unstartedLength(text: string): number {
    return this.#longestFragment(text, (form, length) => text.startsWith(form.slice(form.length - length)));
  }

  #longestFragment(text: string, matches: (form: string, length: number) => boolean): number {
    const lengths = this.#forms.map((form) => {
      for (let length = Math.min(form.length - 1, text.length); length > 0; length -= 1) {
        if (matches(form, length)) {
          return length;
        }
      }
      return 0;
    });
    return Math.max(0, ...lengths);
  }

  #leaf(path: readonly string[], leaf: unknown): unknown {
    const decisive = path.find((key) => PROTOCOL_MEMBERS.has(key) || FREE_JSON_MEMBERS.has(key));
    const isOfProtocol = decisive !== undefined && PROTOCOL_MEMBERS.has(decisive);
    return typeof leaf === 'string' && !isOfProtocol ? this.text(leaf) : leaf;
  }
}

/** Compares types only: values rebuilt member by member keep their texts as texts, and lack only what may be absent. */
export function isSameShape<T>(value: unknown, like: T): value is T {
  return typeof value === typeof like;
}

/** What addresses of proxies hold, and what programs send of it. */
export function proxySecrets(environment: Readonly<Record<string, string>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) => {
    const { username = '', password = '' } = (/_PROXY$/i.test(name) && URL.parse(value)) || {};
    const sent = unescape(password);
    return password === '' ? [] : [password, sent, `${unescape(username)}:${sent}`];
  });
}

function formsOf(secret: string): string[] {
  // A value read from a file often ends with a line break that is not printed along with it.
  const value = secret.trim();
  if (unmaskableReason(value) !== null) {
    return [];
  }
  const base64 = Buffer.from(value, 'utf8').toString('base64');
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  return [
    value,
    ...(lines.length > 1 ? lines.filter((line) => line.length >= MIN_LINE_LENGTH) : []),
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(value, 'utf8').toString('base64url'),
    urlEncoded(value),
    urlEncoded(value).replaceAll('%20', '+'),
    JSON.stringify(value).slice(1, -1),
  ];
}

function fragmentLength(length: number): number {
  return length < MIN_FRAGMENT ? 0 : length;
}

function urlEncoded(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}

export function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
}

const SECRET_MEMBER =
  /^(api_key|aws_access_key_id|aws_secret_access_key|auth|authorization|password|token|secret)$/i;
/** Every value in these members is a secret; their names are shown. */
const SECRET_MAP = /^(env|acp_env|headers|extra_headers|secrets|litellm_extra_body)$/i;

/** Members of a tool server's authentication that are no secret. */
const SHOWN_OF_AUTH = new Set(['strategy', 'username', 'header_name']);

export function redactAgent(agent: Record<string, unknown>): Record<string, unknown> {
  return redactMembers(agent, false);
}

function redactMembers(value: object, all: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      key === 'auth' && isJsonObject(member)
        ? redactAuth(member)
        : redact(
            member,
            all || SECRET_MAP.test(key) || (typeof member === 'string' && SECRET_MEMBER.test(key)),
          ),
    ]),
  );
}

function redactAuth(auth: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(auth).map(([key, member]) => [key, redact(member, !SHOWN_OF_AUTH.has(key))]),
  );
}

function redact(value: unknown, all: boolean): unknown {
  if (typeof value === 'string') {
    return all ? MASK : maskUserInfo(value);
  }
  if (Array.isArray(value)) {
    return value.map((item) => redact(item, all));
  }
  return typeof value === 'object' && value !== null ? redactMembers(value, all) : value;
}

function maskUserInfo(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#@]+@/i, `$1${MASK}@`);
}
