import { Injectable } from '@nestjs/common';
import { DomainError } from '../common/errors/domain-error.js';
import { type Page, parsePageId, toPage } from '../common/pagination/page.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { type User, UserRepository } from './user.repository.js';

@Injectable()
export class UsersService {
  constructor(
    private readonly users: UserRepository,
    private readonly verifier: ApiKeyVerifier,
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

  /** Removes a user with all data. @throws DomainError not_found, or conflict for the last administrator */
  async remove(id: string): Promise<void> {
    switch (await this.users.removeUnlessLastAdministrator(id)) {
      case 'last_administrator':
        throw lastAdministrator();
      case 'unknown':
        throw new DomainError('not_found', 'There is no user with this id.');
      case 'removed':
        this.verifier.forget();
    }
  }
}

export function lastAdministrator(): DomainError {
  return new DomainError('conflict', 'The last administrator cannot be removed.');
}
