import { startNotes } from './start-notes.js';
import type { StartTaskRow } from './start-task-row.js';

/** What a start task has to say: what it is at or why it failed, then what of the request has no effect; null: nothing. */
export function startDetail({
  detail,
  notes,
  request,
}: Pick<StartTaskRow, 'detail' | 'notes' | 'request'>): string | null {
  const further = [...notes, ...startNotes(request)].filter((note) => detail?.includes(note) !== true);
  const lines = [...(detail === null ? [] : [detail]), ...new Set(further)];
  return lines.length === 0 ? null : lines.join('\n');
}
