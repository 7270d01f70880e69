import { hash, randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { networkOf } from '@slipway/common/http/address-rules.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { randomBase62 } from '@slipway/common/identifiers.js';
import { currentRequest } from '@slipway/api/requests/request-context.js';
import { DEVICE_SCOPES } from '../../common/scopes.js';
import { AppConfig } from '../../config/app-config.js';
import { generateApiKey, parsedApiKey } from '../api-key-format.js';
import { ApiKeyRepository } from '../api-key.repository.js';
import { ApiKeysService } from '../api-keys.service.js';
import type { AuthUser } from '../auth.decorators.js';
import { requirePerson } from '../user.repository.js';
import { RateLimit } from '../rate-limit.js';
import { DeviceLogin, DeviceLoginRepository, VALID_MS } from './device-login.repository.js';

export const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';
export const INTERVAL_SECONDS = 5;
const SLOWER_SECONDS = 5;
/** No client waits for longer, whatever it is told. */
const MAX_INTERVAL_SECONDS = 30;
/** Timers run early, and clocks of replicas differ. */
const EARLY_MS = 500;
const DAY_MS = 86_400_000;
/** RFC 8628, section 6.1: no vowels, so no words; 34 bits. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const CODE_LENGTH = 8;
/** Codes that one user may look up in a minute, right or wrong. */
const LOOKUPS = 10;
const MAX_CLIENT_LENGTH = 48;

const REFUSALS = {
  authorization_pending: 'Nobody has approved this login yet.',
  slow_down: 'Wait for `interval` seconds before the next request.',
  access_denied: 'The login was refused, or its key revoked.',
  expired_token: 'The codes are older than ten minutes. Begin again.',
  invalid_grant: 'This device code is unknown, or its key was handed out before.',
  invalid_request: 'Send the device_code.',
  unsupported_grant_type: `The grant_type must be ${GRANT_TYPE}.`,
} as const;

export type DeviceRefusal = keyof typeof REFUSALS;

/** A problem with the members that RFC 6749 wants, section 5.2. */
export function deviceRefusal(error: DeviceRefusal, interval?: number): DomainError {
  const description = REFUSALS[error];
  const extensions = { error, error_description: description, ...(interval !== undefined && { interval }) };
  return new DomainError(error, description, { extensions });
}

export const unknownLogin = (): DomainError =>
  new DomainError(
    'not_found',
    'No device waits with this code: it may be misspelt, used, or older than ten minutes.',
  );

export const tooManyLogins = (): DomainError =>
  new DomainError('rate_limited', 'As many devices wait to be let in as may; try again later.', {
    retryAfterSeconds: 60,
  });

export const tooManyCodes = (retryAfterSeconds: number): DomainError =>
  new DomainError('rate_limited', 'You have tried many codes; wait as long as Retry-After says.', {
    retryAfterSeconds,
  });

export interface BegunLogin {
  deviceCode: string;
  userCode: string;
}

export interface FetchedKey {
  key: string;
  /** Null: it lasts until it is revoked. */
  expiresInSeconds: number | null;
}

/** Logins of devices (RFC 8628): a person approves a short code, and the device that showed it fetches a key. */
@Injectable()
export class DeviceLoginsService {
  private readonly lookups = new RateLimit(LOOKUPS);

  constructor(
    private readonly logins: DeviceLoginRepository,
    private readonly keys: ApiKeyRepository,
    private readonly apiKeys: ApiKeysService,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /** @throws DomainError rate_limited when as many wait as may */
  async begin(client: string): Promise<BegunLogin> {
    const now = new Date(this.clock.now());
    for (const keyId of await this.logins.forgetOld(now)) {
      await this.keys.revoke(keyId, now);
    }
    const letters = Array.from({ length: CODE_LENGTH }, () => LETTERS.charAt(randomInt(LETTERS.length)));
    const userCode = shownCode(letters.join(''));
    const deviceCode = randomBase62(43);
    const isAdded = await this.logins.add(
      {
        deviceCodeHash: digest(deviceCode),
        userCodeHash: digest(userCode),
        client: clientName(client),
        address: networkOf(currentRequest()?.address),
        intervalSeconds: INTERVAL_SECONDS,
      },
      now,
    );
    if (!isAdded) {
      throw tooManyLogins();
    }
    return { deviceCode, userCode };
  }

  /** The login that waits with a code. @throws DomainError not_found, rate_limited after many codes */
  async find(user: AuthUser, userCode: string): Promise<DeviceLogin> {
    const { isExceeded, resetSeconds } = this.lookups.count(user.id);
    if (isExceeded) {
      throw tooManyCodes(resetSeconds);
    }
    const login = await this.logins.findPending(digest(shownCode(userCode)), new Date(this.clock.now()));
    if (login === null) {
      throw unknownLogin();
    }
    return login;
  }

  /** Issues a key for the device, which fetches it. Throws as `find` and `ApiKeysService.issueAs`. */
  async approve(user: AuthUser, userCode: string): Promise<void> {
    const { client, address, userCodeHash } = await this.find(user, userCode);
    const { deviceKeyDays: days } = this.config.trust;
    const end = days === 0 ? null : new Date(this.clock.now() + days * DAY_MS);
    const wanted = { name: `${client} at ${address}`, expiresAt: end, scopes: DEVICE_SCOPES, ofDevice: true };
    await this.apiKeys.issueAs(user, wanted, async (manager, apiKeyId) => {
      await requirePerson(manager, user.id);
      await this.decide(manager, userCodeHash, { apiKeyId });
    });
  }

  /** Throws as `find`. */
  async deny(user: AuthUser, userCode: string): Promise<void> {
    const { userCodeHash } = await this.find(user, userCode);
    await this.decide(this.logins.manager, userCodeHash, { isDenied: true });
  }

  /** The key of a login that was approved, once. @throws DomainError as {@link deviceRefusal} */
  async fetch(deviceCode: string | undefined, grantType = GRANT_TYPE): Promise<FetchedKey> {
    if (grantType !== GRANT_TYPE) {
      throw deviceRefusal('unsupported_grant_type');
    }
    if (deviceCode === undefined || deviceCode === '') {
      throw deviceRefusal('invalid_request');
    }
    // A refusal is stored, so it must not end the transaction.
    const answer = await this.logins.locked(digest(deviceCode), (manager, login) =>
      login === null ? Promise.resolve(deviceRefusal('invalid_grant')) : this.answer(manager, login),
    );
    if (answer instanceof DomainError) {
      throw answer;
    }
    return answer;
  }

  private async answer(manager: EntityManager, login: DeviceLogin): Promise<FetchedKey | DomainError> {
    const { deviceCodeHash, apiKeyId } = login;
    const now = this.clock.now();
    const refusal = refusalOf(login, now);
    if (refusal === 'authorization_pending' || refusal === 'slow_down') {
      const slower = refusal === 'slow_down' ? SLOWER_SECONDS : 0;
      const intervalSeconds = Math.min(login.intervalSeconds + slower, MAX_INTERVAL_SECONDS);
      await manager.update(DeviceLogin, { deviceCodeHash }, { polledAt: new Date(now), intervalSeconds });
      return deviceRefusal(refusal, intervalSeconds);
    }
    if (refusal !== null || apiKeyId === null) {
      return deviceRefusal(refusal ?? 'access_denied');
    }
    const key = generateApiKey(apiKeyId);
    await manager.delete(DeviceLogin, { deviceCodeHash });
    const valid = await this.keys.replaceSecret(manager, parsedApiKey(key), new Date(now));
    if (valid === undefined) {
      return deviceRefusal('access_denied');
    }
    const end = valid.expires_at?.getTime();
    return { key, expiresInSeconds: end === undefined ? null : Math.floor((end - now) / 1000) };
  }

  private async decide(
    manager: EntityManager,
    userCodeHash: Buffer,
    decision: Partial<DeviceLogin>,
  ): Promise<void> {
    if (!(await this.logins.decide(manager, userCodeHash, decision, new Date(this.clock.now())))) {
      throw unknownLogin();
    }
  }
}

/** Why a device gets no key now; null for a login that was approved. */
export function refusalOf(
  {
    createdAt,
    isDenied,
    apiKeyId,
    polledAt,
    intervalSeconds,
  }: Pick<DeviceLogin, 'createdAt' | 'isDenied' | 'apiKeyId' | 'polledAt' | 'intervalSeconds'>,
  now: number,
): DeviceRefusal | null {
  if (now - createdAt.getTime() >= VALID_MS) {
    return 'expired_token';
  }
  if (isDenied) {
    return 'access_denied';
  }
  if (apiKeyId !== null) {
    return null;
  }
  const isTooSoon = polledAt !== null && now - polledAt.getTime() < intervalSeconds * 1000 - EARLY_MS;
  return isTooSoon ? 'slow_down' : 'authorization_pending';
}

/** The first product of a `User-Agent`, or the first word of a `client_id`: nothing that reads like a sentence. */
export function clientName(text: string): string {
  return /[\w.+-]+(?:\/[\w.+-]+)?/.exec(text)?.[0].slice(0, MAX_CLIENT_LENGTH) ?? 'a device';
}

/** Writes a code the way devices show it, however it was typed. */
export function shownCode(text: string): string {
  return text
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
    .replace(/^.{4}/, '$&-');
}

function digest(code: string): Buffer {
  return hash('sha256', code, 'buffer');
}
