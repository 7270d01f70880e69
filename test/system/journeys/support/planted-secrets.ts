import { randomBytes } from 'node:crypto';

/** What a service and its sandboxes are trusted with. The secret of webhooks is the session key. */
export type SecretKind =
  | 'administrator key'
  | 'collector key'
  | 'API key'
  | 'LLM key'
  | 'search key'
  | 'sandbox key'
  | 'git token'
  | 'custom secret'
  | 'tool server key'
  | 'session key';

/** Shorter ones would be found by accident. */
const SHORTEST = 12;

/** The secrets of one world, and the forms in which they may turn up. */
export class PlantedSecrets {
  private readonly kinds = new Map<string, SecretKind>();
  private readonly forms = new Map<string, string>();

  /** A secret that is nowhere else. */
  plant(kind: SecretKind): string {
    return this.know(kind, `${kind.replaceAll(' ', '-')}-${randomBytes(12).toString('hex')}`);
  }

  /** Watches over a secret that was made elsewhere. */
  know(kind: SecretKind, secret: string): string {
    if (secret.length < SHORTEST) {
      throw new Error(`a ${kind} of ${secret.length} characters is too short to be told from other text`);
    }
    if (!this.kinds.has(secret)) {
      this.kinds.set(secret, kind);
      formsOf(secret).forEach((form) => this.forms.set(form, secret));
    }
    return secret;
  }

  /** All forms of all secrets, one per line. */
  get patterns(): string[] {
    return [...this.forms.keys()];
  }

  /** Which kinds of secrets a text has in it. */
  in(text: string): SecretKind[] {
    const found = this.patterns
      .filter((form) => text.includes(form))
      .map((form) => this.forms.get(form) ?? '');
    return [...new Set(found)].flatMap((secret) => this.kinds.get(secret) ?? []);
  }
}

/** As it is, as JSON and URLs write it, and as encoders do that hide nothing. */
function formsOf(secret: string): string[] {
  const base64 = Buffer.from(secret).toString('base64');
  return [
    ...new Set([
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      // The last group depends on what follows.
      base64.replace(/.{0,3}=*$/, ''),
      Buffer.from(secret)
        .toString('base64url')
        .replace(/.{0,3}$/, ''),
      Buffer.from(secret).toString('hex'),
    ]),
  ];
}
