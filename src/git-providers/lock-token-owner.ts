import type { EntityManager } from 'typeorm';
import { DomainError } from '../common/errors/domain-error.js';

/**
 * Makes the writers of one user's tokens take turns until the end of the transaction. Locking the user's row instead
 * of the tokens covers tokens that do not exist yet; foreign keys can still refer to the row meanwhile.
 *
 * @throws DomainError unauthorized when the user has been removed since the request was let in
 */
export async function lockTokenOwner(manager: EntityManager, userId: string): Promise<void> {
  const rows = await manager.query<unknown[]>('SELECT 1 FROM users WHERE id = $1 FOR NO KEY UPDATE', [
    userId,
  ]);
  if (rows.length === 0) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
}
