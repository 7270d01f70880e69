import { jsonList, jsonText } from '@slipway/common/json-access.js';
import type { LoadClient } from './load-client.js';

/** A user may have so many at a time; the oldest goes when there are more. */
const MOST = 40;

/** Secrets that the load creates and removes one by one, and what it was told of each. */
export class KeptSecrets {
  /** Creations and removals that were acknowledged. */
  acknowledged = 0;
  readonly #client: LoadClient;
  readonly #kept = new Set<string>();
  readonly #removed = new Set<string>();

  constructor(client: LoadClient) {
    this.#client = client;
  }

  /** Creates one more, and removes the oldest when there are many. */
  async change(turn: number): Promise<void> {
    const name = `LOAD_${turn}`;
    const body = { name, value: `value ${turn}` };
    // It is unknown whether one whose answer was lost was stored, so it is neither missed nor unexpected.
    if (await this.#client.send('secrets', 'POST', '/api/secrets', { body })) {
      this.#kept.add(name);
      this.acknowledged += 1;
    }
    const [oldest] = this.#kept;
    if (oldest !== undefined && this.#kept.size > MOST) {
      this.#kept.delete(oldest);
      if (await this.#client.send('secrets', 'DELETE', `/api/secrets/${oldest}`)) {
        this.#removed.add(oldest);
        this.acknowledged += 1;
      }
    }
  }

  /** @returns acknowledged changes that the service does not show */
  async lost(): Promise<string[]> {
    const answer = await this.#client.must('secrets', 'GET', '/api/secrets');
    const shown = new Set(jsonList(answer, 'custom_secrets').map((secret) => jsonText(secret, 'name')));
    return [
      ...[...this.#kept].filter((name) => !shown.has(name)).map((name) => `secret ${name} is missing`),
      ...[...this.#removed].filter((name) => shown.has(name)).map((name) => `secret ${name} is back`),
    ];
  }
}
