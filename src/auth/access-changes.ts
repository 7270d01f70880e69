import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import type { Clock } from '@slipway/common/clock.js';
import { DatabaseNotifications } from '@slipway/database/database-notifications.js';

const CHANNEL = 'access_changes';
/** Milliseconds: bounds what a lost notification costs. */
const CACHE_MS = 4_000;
const MAX_CACHED = 10_000;

/** Called with the user whose keys or sessions may have ended; null: anybody's may. */
type Listener = (userId: string | null) => void;

/** Tells all replicas once the transaction is committed. */
export async function publishAccessChange(
  manager: Pick<EntityManager, 'query'>,
  userId: string,
): Promise<void> {
  await manager.query('SELECT pg_notify($1, $2)', [CHANNEL, userId]);
}

/** Tells its listeners that a user's access may have changed, so that they drop what they remember of it. */
@Injectable()
export class AccessChanges {
  private readonly listeners: Listener[] = [];
  private count = 0;

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  tell(userId: string | null): void {
    this.count += 1;
    this.listeners.forEach((listener) => listener(userId));
  }

  /** Reads anew where access has changed meanwhile, as the answer may be from before, and no second signal comes. */
  async settled<T>(read: () => Promise<T>): Promise<T> {
    for (;;) {
      const before = this.count;
      const found = await read();
      if (this.count === before) {
        return found;
      }
    }
  }
}

/** Hears of changes that other replicas, and the command line, have made. */
@Injectable()
export class AccessChangesListener implements OnApplicationBootstrap {
  constructor(
    private readonly changes: AccessChanges,
    private readonly notifications: DatabaseNotifications,
  ) {}

  onApplicationBootstrap(): void {
    this.notifications.listen(
      CHANNEL,
      (userId) => this.changes.tell(userId),
      () => this.changes.tell(null),
    );
  }
}

export interface Verified<User> {
  user: User;
  /** Epoch milliseconds. */
  endsAt: number;
}

/** Caches users whose key or session was verified a moment ago. */
export class VerifiedUsers<User extends { id: string }> {
  private readonly known = new BoundedCache<string, Verified<User> & { verifiedAt: number }>(MAX_CACHED);

  constructor(
    private readonly changes: AccessChanges,
    private readonly clock: Clock,
  ) {
    changes.listen((userId) => this.forget(userId));
  }

  /** @param read null for what is not valid */
  async find(key: string, read: (now: number) => Promise<Verified<User> | null>): Promise<User | null> {
    const now = this.clock.now();
    const known = this.known.get(key);
    // A verification in the future shows that the clock was set back, so its age is unknown.
    if (known && now >= known.verifiedAt && now - known.verifiedAt < CACHE_MS && now < known.endsAt) {
      return known.user;
    }
    const verified = await this.changes.settled(() => read(now));
    if (verified === null) {
      this.known.delete(key);
      return null;
    }
    this.known.set(key, { ...verified, verifiedAt: now });
    return verified.user;
  }

  private forget(userId: string | null): void {
    for (const [key, { user }] of this.known.entries()) {
      if (userId === null || user.id === userId) {
        this.known.delete(key);
      }
    }
  }
}
