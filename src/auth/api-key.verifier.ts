import { timingSafeEqual } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { LRUCache } from 'lru-cache';
import { DataSource } from 'typeorm';
import { Clock } from '../common/clock.js';
import { NamedStatement } from '../database/named-statement.js';
import { parseApiKey } from './api-key-format.js';
import type { AuthUser } from './auth.decorators.js';

/** How long a verified key is believed without asking the database: revocation must hold within 5 s everywhere. */
const BELIEVED_MS = 4_000;
const MOST_BELIEVED = 10_000;
const LAST_USED_MS = 60_000;

const FIND_KEY = `
  SELECT k.secret_hash, k.expires_at, k.revoked_at, k.last_used_at, u.id AS user_id, u.email, u.is_admin
  FROM api_keys k JOIN users u ON u.id = k.user_id
  WHERE k.id = $1`;

const TOUCH_KEY = `
  UPDATE api_keys SET last_used_at = $2
  WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $3)`;

interface KeyRow {
  secret_hash: Buffer;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
  user_id: string;
  email: string;
  is_admin: boolean;
}

interface Believed {
  user: AuthUser;
  expiresAt: number;
  verifiedAt: number;
}

/** Says whose key was presented. On every request's path, so a verified key is believed for a few seconds. */
@Injectable()
export class ApiKeyVerifier {
  private readonly logger = new Logger(ApiKeyVerifier.name);
  private readonly findKey = new NamedStatement<KeyRow>('api_key_find', FIND_KEY);
  private readonly believed = new LRUCache<string, Believed>({ max: MOST_BELIEVED });

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** The key's user, or null: unknown, malformed, revoked and expired keys are all the same. */
  async verify(key: string): Promise<AuthUser | null> {
    const parsed = parseApiKey(key);
    if (!parsed) {
      return null;
    }
    const now = this.clock.now();
    const cacheKey = `${parsed.id}.${parsed.secretHash.toString('base64')}`;
    const known = this.believed.get(cacheKey);
    if (known && now - known.verifiedAt < BELIEVED_MS && now < known.expiresAt) {
      return known.user;
    }
    const [row] = await this.findKey.run(this.dataSource, [parsed.id]);
    if (!row || !timingSafeEqual(row.secret_hash, parsed.secretHash)) {
      return null;
    }
    const expiresAt = row.expires_at?.getTime() ?? Infinity;
    if (row.revoked_at || expiresAt <= now) {
      this.believed.delete(cacheKey);
      return null;
    }
    const user = { id: row.user_id, email: row.email, isAdmin: row.is_admin, keyId: parsed.id };
    this.believed.set(cacheKey, { user, expiresAt, verifiedAt: now });
    if (now - (row.last_used_at?.getTime() ?? 0) >= LAST_USED_MS) {
      this.touch(parsed.id, now);
    }
    return user;
  }

  /** Forgets verified keys here at once; other replicas follow when their belief runs out. */
  forget(): void {
    this.believed.clear();
  }

  /** Not awaited: a request never waits for its own book-keeping. */
  private touch(keyId: string, now: number): void {
    this.dataSource
      .query(TOUCH_KEY, [keyId, new Date(now), new Date(now - LAST_USED_MS)])
      .catch((error: unknown) => {
        this.logger.warn('last_used_at was not written', { keyId, error: String(error) });
      });
  }
}

const FIND_LIVE = `
  SELECT id FROM api_keys
  WHERE id = ANY ($1::text[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`;

/** For answers that go on for longer than a key was checked for. */
@Injectable()
export class LiveKeys {
  private readonly findLive = new NamedStatement<{ id: string }>('api_keys_live', FIND_LIVE);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {}

  /** Those of the keys, by id, that open something right now: neither revoked nor expired, and of a user who is there. */
  async among(keyIds: readonly string[]): Promise<Set<string>> {
    const rows = await this.findLive.run(this.dataSource, [keyIds, new Date(this.clock.now())]);
    return new Set(rows.map(({ id }) => id));
  }
}
