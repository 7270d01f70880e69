import { hash } from 'node:crypto';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Request } from 'express';
import { mayHaveBody } from '@slipway/common/requests/json-body.js';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import { DomainError } from '../common/errors/domain-error.js';
import { currentRequest } from '@slipway/api/requests/request-context.js';
import { networkOf } from '@slipway/common/http/address-rules.js';
import { type Exhausted, SharedLimit } from '@slipway/common/shared-limit.js';
import { bearerToken, type IsOurToken } from './api-key-format.js';
import { RateLimit } from './rate-limit.js';

/** Probes must be answered under load above all. */
const PROBE = /^\/(?:health|health\/live|health\/ready|ready|alive)$/;
/** Streams last for hours and cost little; they have their own limit. */
const STREAM = /\/events\/stream$/;
/** A git host sends the events of all organizations from a few addresses; each organization has its own bound. */
const EVENT_OF_HOST = /^\/api\/automation\/v1\/events\/[^/]+\/[^/]+$/;
/** Egress proxies ask for each sandbox of theirs, from a few addresses; what a sandbox asks of them is bounded there. */
const OF_PROXY = /^\/api\/v1\/egress-proxy\//;
/**
 * Shares of the requests under way: of a user with all sandboxes, of a user's sandboxes, of all strangers, of all
 * events of hosts, and of all egress proxies.
 */
const SHARES = { user: 1 / 4, sandbox: 1 / 8, stranger: 1 / 10, host: 1 / 5, proxy: 1 / 5 };
/** One address's part of what all without a key have. */
const OF_ADDRESS = 1 / 2;
/** The part of a user's minute that sandboxes may use up: who owns an agent in a loop must be able to stop it. */
const MINUTE_OF_SANDBOXES = 1 / 2;
// The current requests are over by then; the range keeps clients from returning all at once.
const RETRY_AFTER_SECONDS = { least: 1, most: 3 };
/** The key of a sandbox, or of a conversation in one. */
const SESSION_KEY = /^(?:[0-9A-Za-z]{43}|slwc_[\w-]{76})$/;
/** The prefix of a conversation's key. */
export const AGENT_KEY = 'slwc_';
const SANDBOX_OWNERS = 10_000;
const SANDBOX_OWNER_MS = 60_000;

type Keyless = 'stranger' | 'host';

interface Caller {
  kind: keyof typeof SHARES;
  /** Id of the user or sandbox; for callers without a key, their network. */
  id: string;
}

type LookUp = [Caller['kind'], () => Promise<{ id: string } | null>];

export interface AdmissionOptions {
  perMinute: number;
  inFlight: number;
  userOf: (key: string) => Promise<{ id: string } | null>;
  /** Whether a JSON Web Token is a key here. */
  isOurToken: (token: string) => boolean;
  signedInUserOf: (request: Request) => Promise<{ id: string } | null>;
  ownerOf: (sessionKey: string) => Promise<{ userId: string } | null>;
  /** Whether a key is that of our egress proxies. */
  isOfProxy: (key: string) => boolean;
}

/**
 * Limits each caller's share of requests under way, and requests per minute (0: unlimited). Beyond saturation every
 * further request delays all, until clients give up and the work was in vain.
 */
export class RequestAdmission {
  private readonly inFlight: SharedLimit;
  /** The share of callers without a key, within `inFlight`. */
  private readonly keyless: Record<Keyless, SharedLimit>;
  private readonly ofUsers: RateLimit;
  /** Within that of their user. */
  private readonly ofSandboxes: RateLimit;
  /** Separate, since addresses can be as many as requests. */
  private readonly ofStrangers: RateLimit;
  private readonly sandboxOwners = new BoundedCache<string, string>(SANDBOX_OWNERS, {
    ttl: SANDBOX_OWNER_MS,
  });

  constructor(private readonly options: AdmissionOptions) {
    const whole = options.inFlight === 0 ? Infinity : options.inFlight;
    this.inFlight = new SharedLimit(whole, whole);
    const keyless = (kind: Keyless): SharedLimit =>
      new SharedLimit(this.places(SHARES[kind]), this.places(SHARES[kind] * OF_ADDRESS));
    this.keyless = { stranger: keyless('stranger'), host: keyless('host') };
    this.ofUsers = new RateLimit(options.perMinute);
    this.ofSandboxes = new RateLimit(Math.ceil(options.perMinute * MINUTE_OF_SANDBOXES));
    this.ofStrangers = new RateLimit(options.perMinute);
  }

  get underWay(): number {
    return this.inFlight.inUse;
  }

  /**
   * Resolves when the request may start.
   * @throws DomainError rate_limited for the caller's share, overloaded for all
   */
  async admit(request: Request, response: ServerResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (PROBE.test(path)) {
      return;
    }
    const takesPlace = !STREAM.test(path);
    if (takesPlace && this.inFlight.inUse >= this.inFlight.whole) {
      throw refusal('whole', 'user');
    }
    const caller = await this.callerOf(request, path, response);
    if (caller.kind !== 'host' && caller.kind !== 'proxy') {
      this.count(caller, response);
    }
    if (!takesPlace) {
      return;
    }
    const context = currentRequest();
    if (
      context !== undefined &&
      isKeyless(caller.kind) &&
      request.method === 'POST' &&
      mayHaveBody(request)
    ) {
      // A caller without a key may let us wait for a body as long as it likes: until then it takes nothing from others.
      context.takePlace = () => this.takePlace(caller, response);
    } else {
      this.takePlace(caller, response);
    }
  }

  private async callerOf(request: Request, path: string, response: ServerResponse): Promise<Caller> {
    const id = networkOf(currentRequest()?.address ?? request.socket.remoteAddress);
    if (request.method === 'POST' && EVENT_OF_HOST.test(path)) {
      return { kind: 'host', id };
    }
    const stranger = { kind: 'stranger', id } as const;
    const keys = presentedKeys(request.headers, this.options.isOurToken);
    if (OF_PROXY.test(path) && keys.some(this.options.isOfProxy)) {
      return { kind: 'proxy', id: 'proxy' };
    }
    // Matches the authenticator, which ignores the session of a request that has a key.
    const ofPage: LookUp = ['user', () => this.options.signedInUserOf(request)];
    const lookUps = keys.length === 0 ? [ofPage] : keys.flatMap((key) => this.lookUps(key));
    for (const [index, [kind, find]] of lookUps.entries()) {
      // What was wrong is paid for before the next one costs anything.
      if (index > 0) {
        this.count(stranger, response);
      }
      const found = await find();
      if (found !== null) {
        return { kind, id: found.id };
      }
    }
    return stranger;
  }

  private lookUps(key: string): LookUp[] {
    const ofSandbox: LookUp = ['sandbox', () => this.sandboxOwner(key)];
    const ofUser: LookUp = ['user', () => this.options.userOf(key)];
    // An operator may have chosen a key for a user that looks like a sandbox's.
    const more = key.startsWith(AGENT_KEY) ? [] : [ofUser];
    return SESSION_KEY.test(key) ? [ofSandbox, ...more] : more;
  }

  /** A revoked key may count as its sandbox's for a minute. */
  private async sandboxOwner(key: string): Promise<{ id: string } | null> {
    const digest = hash('sha256', key, 'base64');
    const known = this.sandboxOwners.get(digest) ?? (await this.options.ownerOf(key))?.userId;
    if (known !== undefined) {
      this.sandboxOwners.set(digest, known);
    }
    return known === undefined ? null : { id: known };
  }

  private count({ kind, id }: Caller, response: ServerResponse): void {
    const limits =
      kind === 'sandbox'
        ? [this.ofSandboxes, this.ofUsers]
        : [kind === 'stranger' ? this.ofStrangers : this.ofUsers];
    for (const limit of limits.filter(({ limit: most }) => most > 0)) {
      const { isExceeded, remaining, resetSeconds } = limit.count(id);
      response.setHeader('X-RateLimit-Limit', limit.limit);
      response.setHeader('X-RateLimit-Remaining', remaining);
      response.setHeader('X-RateLimit-Reset', resetSeconds);
      if (isExceeded) {
        throw new DomainError('rate_limited', this.excess(limit), { retryAfterSeconds: resetSeconds });
      }
    }
  }

  private excess(limit: RateLimit): string {
    const whose =
      limit === this.ofStrangers
        ? 'without a valid key from this address; send one, or'
        : limit === this.ofSandboxes
          ? 'of the sandboxes of this user;'
          : 'of this user, with all keys and sandboxes;';
    return `Too many requests ${whose} wait as long as Retry-After says.`;
  }

  private takePlace({ kind, id }: Caller, response: ServerResponse): void {
    if (response.closed) {
      return;
    }
    const ofKeyless = isKeyless(kind) ? this.keyless[kind].take(id) : undefined;
    if (typeof ofKeyless === 'string') {
      throw refusal('share', kind);
    }
    const place = this.inFlight.take(isKeyless(kind) ? kind : `user ${id}`, this.places(SHARES[kind]));
    if (typeof place === 'string') {
      ofKeyless?.();
      throw refusal(place, kind);
    }
    // The response has been handed over, or the client has gone.
    response.once('close', () => {
      place();
      ofKeyless?.();
    });
  }

  private places(share: number): number {
    return Math.max(1, Math.floor(this.inFlight.whole * share));
  }
}

/** Both candidates, since the route, and with it the header that counts, is not known yet. */
function presentedKeys(headers: IncomingHttpHeaders, isOurs: IsOurToken): string[] {
  const given = [headers['x-session-api-key'], headers['x-access-token'] ?? bearerToken(headers, isOurs)];
  return [...new Set(given.filter((key) => typeof key === 'string'))];
}

function isKeyless(kind: Caller['kind']): kind is Keyless {
  return kind === 'stranger' || kind === 'host';
}

function refusal(full: Exhausted, kind: Caller['kind']): DomainError {
  const { least, most } = RETRY_AFTER_SECONDS;
  const retryAfterSeconds = least + Math.floor(Math.random() * (most - least + 1));
  if (full === 'whole') {
    return new DomainError(
      'overloaded',
      'The service has more to do than it can at the moment; wait as long as Retry-After says.',
      { retryAfterSeconds },
    );
  }
  return new DomainError(
    'rate_limited',
    isKeyless(kind)
      ? 'As many requests without a valid key are under way as may be; send one, or wait as long as Retry-After says.'
      : 'As many requests of this user are under way as may be at a time; wait as long as Retry-After says.',
    { retryAfterSeconds },
  );
}
