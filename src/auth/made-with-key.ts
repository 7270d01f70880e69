import { type EntityManager, type EntityTarget, type FindOptionsWhere, In } from 'typeorm';
import type { AuditAction } from '../audit/audit-action.js';
import type { AuditRepository } from '../audit/audit.repository.js';
import { publishAccessChange } from './access-changes.js';
import { Identity } from './oidc/identity.repository.js';

interface MadeRow {
  id: string;
  userId: string;
  madeByKey: string | null;
}

/** What becomes of the rows of an entity when their key was stolen; without values they are removed. */
const ENDED_WITH_KEY = new Map<EntityTarget<MadeRow>, { action: AuditAction; values: object | null }>();

export function PausedWithKey(action: AuditAction, values: object): ClassDecorator {
  return (type) => void ENDED_WITH_KEY.set(type, { action, values });
}

export function RemovedWithKey(action: AuditAction): ClassDecorator {
  return (type) => void ENDED_WITH_KEY.set(type, { action, values: null });
}

/**
 * Pauses or removes what was made with keys, the sign-ins that were linked with them included.
 * @param revokeKeys ends the keys, also those of sign-ins, and returns their ids
 */
export async function endMadeWith(
  manager: EntityManager,
  audit: AuditRepository,
  revokeKeys: (links: readonly string[]) => Promise<string[]>,
): Promise<void> {
  const links: string[] = [];
  let where = { madeByKey: In(await revokeKeys(links)) };
  for (let found = await manager.findBy(Identity, where); found.length > 0;) {
    links.push(...found.map(({ id }) => id));
    // Ends its sessions, and waits for what these are about to make.
    await manager.delete(Identity, { id: In(links) });
    for (const { userId, issuer, subject } of found) {
      const entry = { action: 'user.unlink' as const, resourceId: userId, ownerId: userId };
      await audit.append(manager, { ...entry, details: { issuer, subject } });
      await publishAccessChange(manager, userId);
    }
    where = { madeByKey: In(await revokeKeys(links)) };
    found = await manager.findBy(Identity, where);
  }
  for (const [type, { action, values }] of ENDED_WITH_KEY) {
    const rows = await lockMade(manager, type, where);
    const which = { id: In(rows.map(({ id }) => id)) };
    await (values === null ? manager.delete(type, which) : manager.update(type, which, values));
    const details = values && { details: { members: Object.keys(values) } };
    const entries = rows.map(({ id, userId }) => ({ action, resourceId: id, ownerId: userId, ...details }));
    await audit.append(manager, ...entries);
  }
}

/** What was made with a key that is forgotten counts as made by what made that. */
export async function giveMadeWith(
  manager: EntityManager,
  where: Pick<MadeRow, 'userId'> & { madeByKey: string },
  madeByKey: string | null,
): Promise<void> {
  for (const type of [...ENDED_WITH_KEY.keys(), Identity]) {
    const rows = await lockMade(manager, type, where);
    await manager.update(type, { id: In(rows.map(({ id }) => id)) }, { madeByKey });
  }
}

/** In the order in which an event locks the automations that it starts, so that neither waits for what the other has. */
async function lockMade(
  manager: EntityManager,
  type: EntityTarget<MadeRow>,
  where: FindOptionsWhere<MadeRow>,
): Promise<Pick<MadeRow, 'id' | 'userId'>[]> {
  const lock = { mode: 'for_no_key_update' } as const;
  return manager.find(type, { select: { id: true, userId: true }, where, order: { id: 'ASC' }, lock });
}
