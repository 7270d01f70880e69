import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../common/clock.js';
import { DomainError, InvalidInputError } from '../common/errors/domain-error.js';
import { type Page, parsePageId, toPage } from '../common/pagination/page.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { AppConfig } from '../config/app-config.js';
import { type User, UserRepository } from './user.repository.js';

/** A feature whose rows may outlive the user who made them. */
export interface UserWorkOwner {
  exists(manager: EntityManager, userId: string): Promise<boolean>;
  /** Gives all of it to another user, and stops what works with the credentials of the first. */
  handOver(manager: EntityManager, from: string, to: string): Promise<void>;
  /** After the commit. */
  handedOver(): void;
}

/** What is to be kept when a user is removed: features that import this one tell what they have. */
@Injectable()
export class UserWork {
  private readonly owners: UserWorkOwner[] = [];

  add(owner: UserWorkOwner): void {
    this.owners.push(owner);
  }

  async exists(manager: EntityManager, userId: string): Promise<boolean> {
    for (const owner of this.owners) {
      if (await owner.exists(manager, userId)) {
        return true;
      }
    }
    return false;
  }

  async handOver(manager: EntityManager, from: string, to: string): Promise<void> {
    for (const owner of this.owners) {
      await owner.handOver(manager, from, to);
    }
  }

  handedOver(): void {
    this.owners.forEach((owner) => owner.handedOver());
  }
}

@Injectable()
export class UsersService {
  constructor(
    private readonly users: UserRepository,
    private readonly verifier: ApiKeyVerifier,
    private readonly work: UserWork,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /** Adds a user. @throws DomainError conflict when the address is taken */
  async create(email: string, name: string | null, isAdmin = false): Promise<User> {
    const user = await this.users.add(email, name, isAdmin);
    if (!user) {
      throw new DomainError('conflict', 'A user with this email address exists already.');
    }
    return user;
  }

  /** Pages of users in the order of their email addresses. */
  async search(filter: { email?: string }, limit: number, pageId: string | undefined): Promise<Page<User>> {
    const after = parsePageId('users', pageId, String);
    if (filter.email !== undefined) {
      const user = await this.users.findByEmail(filter.email);
      return { items: user ? [user] : [], nextPageId: null };
    }
    const users = await this.users.listByEmail(after, limit + 1);
    return toPage('users', users, limit, (user) => user.email);
  }

  /**
   * Removes a user with all data, but for conversations and sandboxes: another user gets them or, without one, they are
   * kept paused for a while.
   * @throws DomainError not_found, or conflict for the last administrator; InvalidInputError for no other user
   */
  async remove(id: string, handOverTo: string | null = null): Promise<void> {
    const removed = await this.users.removeUnlessLastAdministrator(id, async (manager, user) => {
      const heir = await this.heirOf(manager, user, handOverTo);
      if (heir !== null) {
        await this.work.handOver(manager, id, heir);
      }
    });
    switch (removed) {
      case 'last_administrator':
        throw lastAdministrator();
      case 'unknown':
        throw new DomainError('not_found', 'There is no user with this id.');
      case 'removed':
        this.verifier.forget();
        this.work.handedOver();
    }
  }

  /** Null: nothing is to be kept. */
  private async heirOf(manager: EntityManager, user: User, chosen: string | null): Promise<string | null> {
    if (chosen !== null) {
      if (chosen === user.id || !(await this.users.isPresent(manager, chosen))) {
        const msg = 'Expected the id of another user.';
        throw new InvalidInputError({ loc: ['query', 'hand_over_to'], msg, type: 'value_error' });
      }
      return chosen;
    }
    const isKept = user.removedAt === null && this.config.database.removedUserRetentionSeconds > 0;
    return isKept && (await this.work.exists(manager, user.id))
      ? await this.users.addRemoved(manager, user, new Date(this.clock.now()))
      : null;
  }
}

export function lastAdministrator(): DomainError {
  return new DomainError('conflict', 'The last administrator cannot be removed.');
}
