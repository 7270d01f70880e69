import { type EntityManager, QueryFailedError } from 'typeorm';
import { DomainError } from '../common/errors/domain-error.js';
import { NamedStatement } from '../database/named-statement.js';

const LOCK = new NamedStatement('user_lock', 'SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE');

/**
 * Makes transactions that write several of one user's rows take turns. The user's own row is locked, so rows that do
 * not exist yet are covered and two such transactions cannot deadlock; foreign keys can still refer to the row.
 *
 * @throws DomainError unauthorized when the user has been removed since the request was let in
 */
export async function lockUser(manager: EntityManager, userId: string): Promise<void> {
  const rows = await LOCK.within(manager, [userId]);
  if (rows.length === 0) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
}

/** Without its user a row breaks the foreign key, or has no id to refer to at all. */
const STATES: readonly unknown[] = ['23503', '23502'];

/** Whether writing a row of a user failed because the user has been removed since the request was let in. */
export function userIsGone(error: unknown): boolean {
  return (
    error instanceof QueryFailedError &&
    'code' in error.driverError &&
    STATES.includes(error.driverError.code)
  );
}
