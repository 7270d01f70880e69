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

/** One at a time, since they lock rows of several tables; who forgets keys gives such rows to others. */
const LOCK_MADE = "SELECT pg_advisory_xact_lock(hashtext('made_with_key'))";
const HOLD_MADE = "SELECT pg_try_advisory_xact_lock_shared(hashtext('made_with_key')) AS is_free";

/**
 * Pauses or removes what was made with keys, the sign-ins that were linked with them included.
 * @param revokeKeys ends the keys, also those of sign-ins, and returns their ids
 */
export async function endMadeWith(
  manager: EntityManager,
  audit: AuditRepository,
  revokeKeys: (links: readonly string[]) => Promise<string[]>,
): Promise<void> {
  await manager.query(LOCK_MADE);
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

/** Holds up what ends the made rows of any key. False where that is under way, which is not waited for. */
export async function holdMade(manager: EntityManager): Promise<boolean> {
  const [held] = await manager.query<[{ is_free: boolean }]>(HOLD_MADE);
  return held.is_free;
}

/** What was made with a key that is forgotten counts as made by what linked or made that. */
export async function giveMadeWith(
  manager: EntityManager,
  { id, userId, madeByKey, identityId }: MadeRow & { identityId: string | null },
): Promise<void> {
  const link = identityId === null ? null : await manager.findOneBy(Identity, { id: identityId });
  const maker = { madeByKey: link?.madeByKey ?? madeByKey };
  for (const type of [Identity, ...ENDED_WITH_KEY.keys()]) {
    const rows = await lockMade(manager, type, { userId, madeByKey: id });
    await manager.update(type, { id: In(rows.map((row) => row.id)) }, maker);
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
