import { Injectable } from '@nestjs/common';
import { type MemberRole, MEMBER_ROLES, roleOf } from '../auth/access.js';
import type { AuthUser } from '../auth/auth.decorators.js';
import { type User, UserRepository } from '../auth/user.repository.js';
import { UsersService } from '../auth/users.service.js';
import { DomainError, found } from '../common/errors/domain-error.js';
import { INSTALLATION_ORGANIZATION_ID } from './installation-organization.js';

export interface Member {
  id: string;
  email: string;
  role: MemberRole;
  isActive: boolean;
}

/** Positions in lists of members. */
export interface MembersPlace {
  email: string | undefined;
  offset: number;
  limit: number;
}

/** Members of organizations: of that of the installation all users, of a personal one its user. */
@Injectable()
export class MembersService {
  constructor(
    private readonly users: UserRepository,
    private readonly service: UsersService,
  ) {}

  /** In the order of their addresses. */
  async list(
    organizationId: string,
    caller: AuthUser,
    { email, offset, limit }: MembersPlace,
  ): Promise<Member[]> {
    const onlyId = isPersonal(organizationId) ? caller.id : undefined;
    const users = await this.users.withAddress(email ?? '', { skip: offset, take: limit }, onlyId);
    return users.map((user) => toMember(organizationId, user));
  }

  /** @throws DomainError not_found */
  async get(organizationId: string, caller: AuthUser, id: string): Promise<Member> {
    const isMember = !isPersonal(organizationId) || id === caller.id;
    const user = isMember ? await this.users.findPresent(id) : null;
    return toMember(organizationId, found(user, 'member'));
  }

  /** @throws DomainError not_found, conflict where a map gives the role, forbidden unless another one, an owner, asks */
  async setRole(id: string, by: string, role: MemberRole): Promise<Member> {
    requireAnother(id, by);
    return toMember(INSTALLATION_ORGANIZATION_ID, await this.service.setRole(id, by, role));
  }

  /**
   * All users are members, so this removes the user: conversations and sandboxes are kept for a while.
   * @throws DomainError not_found, forbidden unless another one, an owner, asks
   */
  async remove(id: string, by: string): Promise<void> {
    requireAnother(id, by);
    await this.service.remove(id, null, { id: by, asOwner: true });
  }
}

function requireAnother(id: string, by: string): void {
  if (id === by) {
    throw new DomainError('forbidden', 'Another owner has to do this to you.');
  }
}

function isPersonal(organizationId: string): boolean {
  return organizationId !== INSTALLATION_ORGANIZATION_ID;
}

function toMember(organizationId: string, user: User): Member {
  const { id, email, disabledAt } = user;
  const role = isPersonal(organizationId) ? 'owner' : roleOf(user);
  return { id, email, role, isActive: disabledAt === null };
}

/** The highest role is 1, as the peer counts. */
export function rankOf(role: MemberRole): number {
  return MEMBER_ROLES.length - MEMBER_ROLES.indexOf(role);
}
