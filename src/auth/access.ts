import { DomainError } from '../common/errors/domain-error.js';
import type { AuthUser } from './auth.decorators.js';
import { isWithin, type RowRepository, withinRepositories } from './key-repositories.js';

/** Who reads a row besides its owner and administrators: `organization` lets all users of the installation read it. */
export const VISIBILITIES = ['private', 'organization'] as const;

export type Visibility = (typeof VISIBILITIES)[number];

/** From least to most. */
export const MEMBER_ROLES = ['viewer', 'member', 'admin', 'owner'] as const;

export type MemberRole = (typeof MEMBER_ROLES)[number];

/** Columns of `users`, which say a user's role. */
export interface RoleColumns {
  isAdmin: boolean;
  isOwner: boolean;
  readsOnly: boolean;
}

export function roleOf({ isAdmin, isOwner, readsOnly }: RoleColumns): MemberRole {
  if (isAdmin) {
    return isOwner ? 'owner' : 'admin';
  }
  return readsOnly ? 'viewer' : 'member';
}

export function roleColumns(role: MemberRole): RoleColumns {
  return {
    isAdmin: role === 'admin' || role === 'owner',
    isOwner: role === 'owner',
    readsOnly: role === 'viewer',
  };
}

/**
 * `read`: see what is stored. `steer`: make it go on, pause or stop it. `own`: change what it is, share and delete it, and
 * reach what runs for it.
 */
export type Access = 'read' | 'steer' | 'own';

/** A conversation, or what is of one. */
export interface AccessedRow extends RowRepository {
  userId: string;
  visibility?: Visibility;
}

export type Caller = Pick<AuthUser, 'id' | 'isAdmin' | 'repositories'>;

/** Whether the caller may do this to the row. What the key of the caller may do is asked by route (`common/scopes.ts`). */
export function may({ id, isAdmin, repositories }: Caller, access: Access, row: AccessedRow): boolean {
  const { userId, visibility } = row;
  if (!isWithin(repositories, row)) {
    return false;
  }
  if (userId === id) {
    return true;
  }
  switch (access) {
    case 'read':
      return isAdmin || visibility === 'organization';
    case 'steer':
      return isAdmin;
    case 'own':
      return false;
  }
}

/**
 * SQL: whether a caller {@link may} read the row, which has the columns `user_id` and `visibility`.
 * @param callerId parameter, as the others
 */
export function mayRead(row: string, callerId: string, isAdmin: string, repositories: string): string {
  return `((${row}.user_id = ${callerId} OR ${row}.visibility = 'organization' OR ${isAdmin}::boolean)
    AND (${repositories}::text[] IS NULL OR ${isOfKey(row, repositories)}))`;
}

/** SQL: whether the conversation is of a repository of the key. @param repositories parameter, not null */
export function isOfKey(row: string, repositories: string): string {
  const columns = { provider: `${row}.git_provider`, repository: `${row}.selected_repository` };
  return withinRepositories(repositories, columns);
}

/**
 * Returns whether the row is one that the caller knows of: all others are as unknown as those that never existed.
 * @throws DomainError forbidden for what may be read only
 */
export function requireAccess(caller: Caller, access: Access, row: AccessedRow): boolean {
  if (may(caller, access, row)) {
    return true;
  }
  if (may(caller, 'read', row)) {
    throw readableOnly(access);
  }
  return false;
}

export function readableOnly(access: Access): DomainError {
  const allowed = access === 'steer' ? 'its owner or an administrator' : 'its owner';
  return new DomainError('forbidden', `You may read this conversation. Ask ${allowed} to do this.`);
}
