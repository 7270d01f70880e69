import type { EntityManager } from 'typeorm';
import type { ObservedState } from './observed-state.js';

/** Members that were not seen stay; a row that would not change is not written. */
const CHANGE = `
  UPDATE followed_conversations f
  SET execution_status = coalesce($2, f.execution_status),
      metrics = coalesce($3::jsonb, f.metrics),
      title = coalesce($4, f.title),
      updated_at = now()
  FROM (SELECT id, execution_status, metrics, title FROM followed_conversations WHERE id = $1 FOR UPDATE) AS old
  WHERE f.id = old.id
    AND (coalesce($2, old.execution_status) IS DISTINCT FROM old.execution_status
      OR coalesce($3::jsonb, old.metrics) IS DISTINCT FROM old.metrics
      OR coalesce($4, old.title) IS DISTINCT FROM old.title)
  RETURNING f.execution_status IS DISTINCT FROM old.execution_status AS status_changed,
    f.metrics IS DISTINCT FROM old.metrics AS metrics_changed,
    f.title IS DISTINCT FROM old.title AS title_changed`;

interface Changes {
  status_changed: boolean;
  metrics_changed: boolean;
  title_changed: boolean;
}

/** Writes what was observed of a conversation's state; answers the part that is news, null when nothing is. */
export async function changeState(
  manager: EntityManager,
  conversationId: string,
  { executionStatus, metrics, title }: ObservedState,
): Promise<ObservedState | null> {
  if (executionStatus === undefined && metrics === undefined && title === undefined) {
    return null;
  }
  const [rows] = await manager.query<[Changes[], number]>(CHANGE, [
    conversationId,
    executionStatus ?? null,
    metrics === undefined ? null : JSON.stringify(metrics),
    title ?? null,
  ]);
  const [changes] = rows;
  return changes
    ? {
        ...(changes.status_changed && executionStatus !== undefined && { executionStatus }),
        ...(changes.metrics_changed && metrics !== undefined && { metrics }),
        ...(changes.title_changed && title !== undefined && { title }),
      }
    : null;
}
