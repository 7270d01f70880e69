import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { MoreThan, Repository } from 'typeorm';
import { DomainError } from '../common/errors/domain-error.js';
import { decodePageId, type Page, toPage } from '../common/pagination/page.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import { User } from './user.entity.js';

/** Users, as administrators manage them. */
@Injectable()
export class UsersService {
  constructor(
    @InjectRepository(User) private readonly users: Repository<User>,
    private readonly verifier: ApiKeyVerifier,
  ) {}

  /** @throws DomainError conflict when the address is taken */
  async create(email: string, name: string | null, isAdmin = false): Promise<User> {
    const { raw } = await this.users
      .createQueryBuilder()
      .insert()
      .values({ id: randomUUID(), email: email.toLowerCase(), name, isAdmin })
      .orIgnore()
      .returning('*')
      .execute();
    const [row] = raw as { id: string }[];
    if (!row) {
      throw new DomainError('conflict', 'conflict', 'A user with this email address exists already.');
    }
    return this.users.findOneByOrFail({ id: row.id });
  }

  /** Users by email address, in alphabetical pages. */
  async search(filter: { email?: string }, limit: number, pageId: string | undefined): Promise<Page<User>> {
    if (filter.email !== undefined) {
      return { items: await this.users.findBy({ email: filter.email.toLowerCase() }), nextPageId: null };
    }
    const after = decodePageId(pageId);
    const rows = await this.users.find({
      where: after === null ? {} : { email: MoreThan(after) },
      order: { email: 'ASC' },
      take: limit + 1,
    });
    return toPage(rows, limit, (user) => user.email);
  }

  async findByEmail(email: string): Promise<User | null> {
    return this.users.findOneBy({ email: email.toLowerCase() });
  }

  async exists(id: string): Promise<boolean> {
    return this.users.existsBy({ id });
  }

  /**
   * Removes a user and everything they own.
   *
   * @throws DomainError not_found, or conflict for the last administrator
   */
  async remove(id: string): Promise<void> {
    await this.users.manager.transaction(async (manager) => {
      const users = manager.getRepository(User);
      const admins = await users.find({ where: { isAdmin: true }, lock: { mode: 'pessimistic_write' } });
      if (admins.length === 1 && admins[0]?.id === id) {
        throw new DomainError('conflict', 'conflict', 'The last administrator cannot be removed.');
      }
      const { affected } = await users.delete({ id });
      if (affected !== 1) {
        throw new DomainError('not_found', 'not_found', 'There is no user with this id.');
      }
    });
    this.verifier.forget();
  }
}
