import { CUT_MARK } from './tools/tool.js';

const HIDDEN = '<secret-hidden>';
/** Shorter values would blacken half of every text. */
const SHORTEST = 4;
/** A line of a key or a certificate is longer; it may appear without its neighbours, or behind a line number. */
const SHORTEST_LINE = 16;
/** Members that hold names and ids of the protocol; a secret that happens to be `user` must not break an event. */
const STRUCTURAL = new Set([
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

/** Free JSON of a tool's: no member in it carries the protocol. */
const FREE = 'data';

/**
 * Replaces known secret values, also in base64, URL-encoded or escaped as in JSON, single lines of long ones, and what is
 * left of one where a text was cut.
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
    return this.#pattern === null ? text : this.#withoutTorn(text.replace(this.#pattern, HIDDEN));
  }

  /** How many characters at the end of a text may be the beginning of a secret. */
  unfinished(text: string): number {
    const lengths = this.#forms.map((form) => {
      for (let length = Math.min(form.length - 1, text.length); length > 0; length -= 1) {
        if (text.endsWith(form.slice(0, length))) {
          return length;
        }
      }
      return 0;
    });
    return Math.max(0, ...lengths);
  }

  /** The same value with every text in it masked, however deep. */
  value<T>(value: T): T {
    const masked = this.#pattern === null ? value : this.#deep(value, false);
    return isSameShape(masked, value) ? masked : value;
  }

  /** Half a secret on either side of a cut is no secret any more that could be found. */
  #withoutTorn(text: string): string {
    const parts = text.split(CUT_MARK);
    return parts
      .map((part, index) => {
        if (index % 2 === 1) {
          return part;
        }
        const end = index < parts.length - 1 ? tornLength(this.unfinished(part)) : 0;
        const start = index > 0 ? tornLength(this.#unstarted(part)) : 0;
        const kept = part.slice(start, Math.max(start, part.length - end));
        return `${start > 0 ? HIDDEN : ''}${kept}${end > 0 ? HIDDEN : ''}`;
      })
      .join('');
  }

  /** How many characters at the beginning of a text may be the end of a secret. */
  #unstarted(text: string): number {
    const lengths = this.#forms.map((form) => {
      for (let length = Math.min(form.length - 1, text.length); length > 0; length -= 1) {
        if (text.startsWith(form.slice(form.length - length))) {
          return length;
        }
      }
      return 0;
    });
    return Math.max(0, ...lengths);
  }

  #deep(value: unknown, isFree: boolean): unknown {
    if (typeof value === 'string') {
      return this.text(value);
    }
    if (Array.isArray(value)) {
      return value.map((item) => this.#deep(item, isFree));
    }
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(
        Object.entries(value).map(([key, member]) => [
          key,
          !isFree && STRUCTURAL.has(key) ? member : this.#deep(member, isFree || key === FREE),
        ]),
      );
    }
    return value;
  }
}

/** A text is replaced by a text, and nothing else is replaced. */
function isSameShape<T>(value: unknown, like: T): value is T {
  return typeof value === typeof like;
}

function formsOf(secret: string): string[] {
  // A value from a file mostly ends with a line break that nobody prints along.
  const value = secret.trim();
  if (value.length < SHORTEST) {
    return [];
  }
  const base64 = Buffer.from(value, 'utf8').toString('base64');
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  return [
    value,
    ...(lines.length > 1 ? lines.filter((line) => line.length >= SHORTEST_LINE) : []),
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(value, 'utf8').toString('base64url'),
    urlEncoded(value),
    urlEncoded(value).replaceAll('%20', '+'),
    JSON.stringify(value).slice(1, -1),
  ];
}

/** A few characters tell nothing, and many a word ends with them. */
function tornLength(length: number): number {
  return length < SHORTEST ? 0 : length;
}

function urlEncoded(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
}
