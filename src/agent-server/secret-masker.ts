const HIDDEN = '<secret-hidden>';
/** Shorter values would blacken half of every text. */
const SHORTEST = 4;
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

/** Replaces known secret values, also in base64, URL-encoded or escaped as in JSON. */
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
    return this.#pattern === null ? text : text.replace(this.#pattern, HIDDEN);
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
    const masked = this.#pattern === null ? value : this.#deep(value);
    return isSameShape(masked, value) ? masked : value;
  }

  #deep(value: unknown): unknown {
    if (typeof value === 'string') {
      return this.text(value);
    }
    if (Array.isArray(value)) {
      return value.map((item) => this.#deep(item));
    }
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(
        Object.entries(value).map(([key, member]) => [
          key,
          STRUCTURAL.has(key) ? member : this.#deep(member),
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
  return [
    value,
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(value, 'utf8').toString('base64url'),
    urlEncoded(value),
    urlEncoded(value).replaceAll('%20', '+'),
    JSON.stringify(value).slice(1, -1),
  ];
}

function urlEncoded(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
}
