import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import { Clock } from '@slipway/common/clock.js';
import { DomainError, found } from '../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { type Page, parsePageId, toPage } from '@slipway/api/pagination/page.js';
import { AppConfig } from '../config/app-config.js';
import { AccessChanges } from './access-changes.js';
import type { MemberRole } from './access.js';
import { ApiKeyRepository } from './api-key.repository.js';
import { IdentityRepository } from './oidc/identity.repository.js';
import { SessionRepository } from './sessions/session.repository.js';
import { roleOfMap, User, type UserKind, UserRepository } from './user.repository.js';

/** A feature whose rows may outlive the user who made them. */
export interface UserWorkOwner {
  exists(manager: EntityManager, userId: string): Promise<boolean>;
  /** Gives all of it to another user, and stops what works with the credentials of the first. */
  handOver(manager: EntityManager, from: string, to: string): Promise<void>;
  /** Ends what runs. */
  suspend(manager: EntityManager, userId: string, how: SuspendedSandboxes): Promise<void>;
  /** After the commit. */
  changed(): void;
}

/** `stop` also gives up what was about to go on by itself after the user is enabled again. */
export const SANDBOXES_OF_DISABLED = ['pause', 'stop', 'keep'] as const;

export type SandboxesOfDisabled = (typeof SANDBOXES_OF_DISABLED)[number];
export type SuspendedSandboxes = Exclude<SandboxesOfDisabled, 'keep'>;

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

  async suspend(manager: EntityManager, userId: string, how: SuspendedSandboxes): Promise<void> {
    for (const owner of this.owners) {
      await owner.suspend(manager, userId, how);
    }
  }

  changed(): void {
    this.owners.forEach((owner) => owner.changed());
  }
}

interface NewUser {
  isAdmin?: boolean;
  kind?: UserKind | undefined;
  by?: string;
}

@Injectable()
export class UsersService {
  constructor(
    private readonly users: UserRepository,
    private readonly keys: ApiKeyRepository,
    private readonly sessions: SessionRepository,
    private readonly identities: IdentityRepository,
    private readonly changes: AccessChanges,
    private readonly work: UserWork,
    private readonly config: AppConfig,
    private readonly clock: Clock,
  ) {}

  /**
   * Adds a user. @throws DomainError conflict when the address is taken; InvalidInputError for a person without one
   * @param how with `by` an administrator asks; throws as `UserRepository.requireAdministrator`
   */
  async create(
    email: string | null,
    name: string | null,
    { isAdmin = false, kind = 'person', by }: NewUser = {},
  ): Promise<User> {
    if (email === null && kind === 'person') {
      const msg = 'This member is required of a person.';
      throw new InvalidInputError({ loc: ['body', 'email'], msg, type: 'missing' });
    }
    const address = email ?? `${randomUUID()}@service.invalid`;
    return this.users.manager.transaction(async (manager) => {
      if (by !== undefined) {
        await this.users.lockAdministrators(manager, by);
      }
      const id = await this.users.add(manager, { email: address, name, isAdmin, kind });
      if (id === null) {
        throw new DomainError('conflict', 'A user with this email address exists already.');
      }
      return manager.findOneByOrFail(User, { id });
    });
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
   * @param by the administrator who asks, and whether an owner has to; without, an operator at the command line
   * @throws DomainError not_found, forbidden, or conflict for the last administrator; InvalidInputError for no other user
   */
  async remove(
    id: string,
    handOverTo: string | null = null,
    by?: { id: string; asOwner?: boolean },
  ): Promise<void> {
    await this.users.change(id, async (manager, user) => {
      if (by !== undefined) {
        await (by.asOwner === true
          ? this.users.requireOwner(manager, by.id)
          : this.users.requireRank(manager, by.id, user));
      }
      const heir = await this.heirOf(manager, user, handOverTo);
      if (heir !== null) {
        await this.work.handOver(manager, id, heir);
      }
      await this.identities.forgetSaid(manager, id);
      await this.users.removeWithin(manager, id);
    });
    this.changes.tell(id);
    this.work.changed();
  }

  /**
   * No person and no program acts in the user's name until `enable`: sessions and keys of devices end for good, other keys for so long.
   * @throws DomainError not_found, forbidden for an owner unless an owner asks, or conflict for the last administrator
   */
  async disable(id: string, by: string, sandboxes: SandboxesOfDisabled): Promise<User> {
    const now = new Date(this.clock.now());
    const user = await this.users.change(id, async (manager, known) => {
      await this.users.requireRank(manager, by, known);
      await this.users.setDisabled(manager, present(known), now);
      await this.sessions.endAll(manager, id);
      await this.keys.revokeOfDevices(manager, id, now);
      if (sandboxes !== 'keep') {
        await this.work.suspend(manager, id, sandboxes);
      }
      return manager.findOneByOrFail(User, { id });
    });
    this.changes.tell(id);
    this.work.changed();
    return user;
  }

  /** Keys are valid again; what has waited goes on. @throws DomainError not_found, forbidden */
  async enable(id: string, by: string): Promise<User> {
    return this.users.change(id, async (manager, known) => {
      await this.users.requireAdministrator(manager, by);
      await this.users.setDisabled(manager, present(known), null);
      return manager.findOneByOrFail(User, { id });
    });
  }

  /** Email addresses by the ids of users. */
  async addresses(ids: readonly string[]): Promise<Map<string, string>> {
    const distinct = [...new Set(ids)];
    const rows = distinct.length === 0 ? [] : await this.users.findBy({ id: In(distinct) });
    return new Map(rows.map(({ id, email }) => [id, email]));
  }

  /** Users whose address has this part, a thousand at most. */
  async idsByAddress(part: string): Promise<string[]> {
    return (await this.users.withAddress(part, { take: 1_000 })).map(({ id }) => id);
  }

  /** Whether anything may be done in the name of a user now. */
  async mayAct(id: string): Promise<boolean> {
    return (await this.users.acting([id])).has(id);
  }

  /**
   * @param by null: the operator, at the command line
   * @throws DomainError not_found, forbidden for an owner unless an owner asks, or conflict for the last administrator, and for
   *   whom a map gives the role
   */
  async setAdministrator(id: string, by: string | null, isAdmin: boolean): Promise<User> {
    return this.changeRole(id, async (manager, known) => {
      if (by !== null) {
        await this.users.requireRank(manager, by, known);
      }
      await this.users.setAdministrator(manager, id, isAdmin);
    });
  }

  /** Throws as {@link setAdministrator}. @throws DomainError forbidden unless an owner asks */
  async setRole(id: string, by: string, role: MemberRole): Promise<User> {
    return this.changeRole(id, async (manager) => {
      await this.users.requireOwner(manager, by);
      await this.users.setRole(manager, id, role);
    });
  }

  private async changeRole(
    id: string,
    change: (manager: EntityManager, user: User) => Promise<void>,
  ): Promise<User> {
    const hasMap = (this.config.oidc?.roleMap.size ?? 0) > 0;
    const user = await this.users.change(id, async (manager, known) => {
      present(known);
      if (hasMap && known.kind === 'person' && (await this.identities.areOf(manager, id))) {
        throw roleOfMap();
      }
      await change(manager, known);
      return manager.findOneByOrFail(User, { id });
    });
    this.changes.tell(id);
    return user;
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

/** @throws DomainError not_found for the row that stands for a removed user */
function present(user: User): User {
  return found(user.removedAt === null ? user : null, 'user');
}
