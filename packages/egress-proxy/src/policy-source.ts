import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { KeyedLimit } from '@slipway/common/async.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import type { EgressPolicy } from './protocol.js';
import { RefusedError } from './refusal.js';
import type { ServiceConnection } from './service-connection.js';

/** For how long sandboxes go on by the last answer while the service is away; in their setup they do not, as it may be over. */
export const OUTAGE_MS = 5 * 60_000;
/** After a failure the service is left alone for so long. */
const RETRY_MS = 1_000;
const UNKNOWN_MS = 2_000;
const MAX_POLICIES = 4_096;
const MAX_UNKNOWN = 1_024;
/** Of credentials that the proxy has not seen: guesses of one sandbox must not keep the service from others, nor others that are new from their turn. */
const MAX_FIRST_QUESTIONS = 64;
/** More than may be connected without a credential: a question stays when its connection goes. */
const MAX_WAITING = 4_096;
const FIRST = 'first';

interface Known {
  policy: EgressPolicy;
  freshUntil: number;
}

/** The policies of sandboxes by their credentials, kept for as long as the service says; parallel requests ask once. */
export class PolicySource {
  private readonly known: LRUCache<string, Known>;
  private readonly unknown: LRUCache<string, true>;
  private readonly asking = new Map<string, Promise<EgressPolicy | null>>();
  private readonly questions = new KeyedLimit(MAX_FIRST_QUESTIONS);

  constructor(
    private readonly service: Pick<ServiceConnection, 'policy'>,
    private readonly now: () => number = () => performance.now(),
  ) {
    const perf = { now };
    this.known = new LRUCache({
      max: MAX_POLICIES,
      ttl: OUTAGE_MS,
      ttlResolution: 0,
      ttlAutopurge: true,
      perf,
    });
    this.unknown = new LRUCache({ max: MAX_UNKNOWN, ttl: UNKNOWN_MS, ttlResolution: 0, perf });
  }

  get sizes(): { known: number; asking: number } {
    return { known: this.known.size, asking: this.asking.size };
  }

  /** Null where no sandbox has this credential. @throws RefusedError while the service cannot say */
  async policy(credential: string): Promise<EgressPolicy | null> {
    const key = hash('sha256', credential);
    const known = this.known.get(key);
    if (known && this.now() < known.freshUntil) {
      return known.policy;
    }
    if (this.unknown.has(key)) {
      return null;
    }
    let asking = this.asking.get(key);
    if (asking === undefined) {
      if (known === undefined && this.questions.waiting(FIRST) >= MAX_WAITING) {
        throw unanswered('it is asked for too many sandboxes at once');
      }
      const ask = (): Promise<EgressPolicy | null> => this.ask(key, credential);
      const answer = known === undefined ? this.questions.run(FIRST, ask) : ask();
      asking = answer.finally(() => this.asking.delete(key));
      this.asking.set(key, asking);
    }
    try {
      return await asking;
    } catch (error) {
      if (known === undefined || known.policy.phase === 'setup' || this.known.get(key) === undefined) {
        throw unanswered(errorWithCauses(error));
      }
      known.freshUntil = this.now() + RETRY_MS;
      return known.policy;
    }
  }

  private async ask(key: string, credential: string): Promise<EgressPolicy | null> {
    // An answer may be on its way for long, and was true when it was made.
    const askedAt = this.now();
    const policy = await this.service.policy(credential);
    if (policy === null) {
      this.known.delete(key);
      this.unknown.set(key, true);
    } else {
      this.known.set(key, { policy, freshUntil: askedAt + policy.maxAgeSeconds * 1000 });
    }
    return policy;
  }
}

function unanswered(why: string): RefusedError {
  return new RefusedError(null, 503, `Slipway's egress proxy cannot learn the rules of this sandbox: ${why}`);
}
