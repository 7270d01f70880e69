import { hash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import ipaddr from 'ipaddr.js';
import { BoundedCache } from '../common/bounded-cache.js';
import { DomainError } from '../common/errors/domain-error.js';
import { type Exhausted, SharedLimit } from '../common/shared-limit.js';
import { bearerToken } from './auth.guard.js';
import { RateLimit } from './rate-limit.js';

/** Probes have to be answered above all while there is much to do. */
const PROBE = /^\/(?:health|health\/live|health\/ready|ready|alive)$/;
/** Streams last for hours and cost little; they have a limit of their own. */
const STREAM = /\/events\/stream$/;
/** Parts of the requests under way that a user with all sandboxes, the sandboxes of a user, and strangers together may have. */
const SHARES = { user: 1 / 4, sandbox: 1 / 8, stranger: 1 / 10 };
/** By then the requests under way are over; clients that all come back at once would be refused again. */
const RETRY_AFTER_SECONDS = { least: 1, most: 3 };
const SESSION_KEY = /^[0-9A-Za-z]{43}$/;
const SANDBOX_OWNERS = 10_000;
const SANDBOX_OWNER_MS = 60_000;
/** What one customer of an internet provider has of IPv6 (RFC 6177). */
const IPV6_NETWORK_BITS = 64;

interface Caller {
  kind: keyof typeof SHARES;
  /** A user's id, or the address of a stranger. */
  id: string;
}

export interface AdmissionOptions {
  /** Requests of a user, and of strangers at one address, in a minute; 0: any number. */
  perMinute: number;
  /** Requests under way in this process; 0: any number. */
  inFlight: number;
  /** The user of an API key; null for any other text. */
  userOf: (key: string) => Promise<{ id: string } | null>;
  /** The owner of the sandbox with a session key; null for any other text. */
  ownerOf: (sessionKey: string) => Promise<{ userId: string } | null>;
}

/**
 * Decides whether a request is worked on: its caller has a share of the requests under way and a number of requests in a
 * minute, and what others do takes nothing of either. Beyond saturation each further request would only make all of them
 * late, until their clients give up and the work has been done in vain.
 */
export class RequestAdmission {
  private readonly inFlight: SharedLimit;
  private readonly ofUsers: RateLimit;
  /** Apart, since addresses can be as many as requests. */
  private readonly ofStrangers: RateLimit;
  private readonly sandboxOwners = new BoundedCache<string, string>(SANDBOX_OWNERS, {
    ttl: SANDBOX_OWNER_MS,
  });

  constructor(private readonly options: AdmissionOptions) {
    const whole = options.inFlight === 0 ? Infinity : options.inFlight;
    this.inFlight = new SharedLimit(whole, whole);
    this.ofUsers = new RateLimit(options.perMinute);
    this.ofStrangers = new RateLimit(options.perMinute);
  }

  /** Requests under way. */
  get underWay(): number {
    return this.inFlight.inUse;
  }

  /**
   * Resolves when the request may be worked on.
   *
   * @throws DomainError rate_limited when the caller has all of its share, overloaded when all places are taken
   */
  async admit(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = ''] = (request.url ?? '').split('?', 1);
    if (PROBE.test(path)) {
      return;
    }
    const takesPlace = !STREAM.test(path);
    if (takesPlace && this.inFlight.inUse >= this.inFlight.whole) {
      // Before anything else is done for it.
      throw refusal('whole', 'user');
    }
    const caller = await this.callerOf(request);
    this.count(caller, response);
    if (takesPlace) {
      this.takePlace(caller, response);
    }
  }

  private async callerOf({ headers, socket }: IncomingMessage): Promise<Caller> {
    for (const key of presentedKeys(headers)) {
      const owner = SESSION_KEY.test(key) ? await this.sandboxOwner(key) : null;
      if (owner !== null) {
        return { kind: 'sandbox', id: owner };
      }
      const user = await this.options.userOf(key);
      if (user !== null) {
        return { kind: 'user', id: user.id };
      }
    }
    return { kind: 'stranger', id: networkOf(socket.remoteAddress) };
  }

  /** A key that opens nothing any more may count as its sandbox's for a minute. */
  private async sandboxOwner(key: string): Promise<string | null> {
    const digest = hash('sha256', key, 'base64');
    const known = this.sandboxOwners.get(digest) ?? (await this.options.ownerOf(key))?.userId;
    if (known !== undefined) {
      this.sandboxOwners.set(digest, known);
    }
    return known ?? null;
  }

  private count({ kind, id }: Caller, response: ServerResponse): void {
    const limit = kind === 'stranger' ? this.ofStrangers : this.ofUsers;
    if (limit.limit === 0) {
      return;
    }
    const { isExceeded, remaining, resetSeconds } = limit.count(id);
    response.setHeader('X-RateLimit-Limit', limit.limit);
    response.setHeader('X-RateLimit-Remaining', remaining);
    response.setHeader('X-RateLimit-Reset', resetSeconds);
    if (isExceeded) {
      throw new DomainError(
        'rate_limited',
        'rate_limited',
        kind === 'stranger'
          ? 'Too many requests without a valid key from this address; send one, or wait as long as Retry-After says.'
          : 'Too many requests of this user, with all keys and sandboxes; wait as long as Retry-After says.',
        { retryAfterSeconds: resetSeconds },
      );
    }
  }

  private takePlace({ kind, id }: Caller, response: ServerResponse): void {
    if (response.closed) {
      return;
    }
    const holder = kind === 'stranger' ? kind : `user ${id}`;
    const share = Math.max(1, Math.floor(this.inFlight.whole * SHARES[kind]));
    const place = this.inFlight.take(holder, share);
    if (typeof place === 'string') {
      throw refusal(place, kind);
    }
    // All of the response has been handed over, or the client has gone.
    response.once('close', place);
  }
}

/** Every key that may be one, since which of them a route goes by is not known yet. */
function presentedKeys(headers: IncomingHttpHeaders): string[] {
  const given = [headers['x-session-api-key'], headers['x-access-token'], bearerToken(headers)];
  return [...new Set(given.filter((key) => typeof key === 'string'))];
}

function networkOf(address = ''): string {
  if (!ipaddr.isValid(address)) {
    return address;
  }
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/${IPV6_NETWORK_BITS}`).toString();
}

function refusal(full: Exhausted, kind: Caller['kind']): DomainError {
  const { least, most } = RETRY_AFTER_SECONDS;
  const retryAfterSeconds = least + Math.floor(Math.random() * (most - least + 1));
  if (full === 'whole') {
    return new DomainError(
      'unavailable',
      'overloaded',
      'The service has more to do than it can at the moment; wait as long as Retry-After says.',
      { retryAfterSeconds },
    );
  }
  return new DomainError(
    'rate_limited',
    'rate_limited',
    kind === 'stranger'
      ? 'As many requests without a valid key are under way as may be; send one, or wait as long as Retry-After says.'
      : 'As many requests of this user are under way as may be at a time; wait as long as Retry-After says.',
    { retryAfterSeconds },
  );
}
