import type { SettingsColumn } from './settings-columns.js';

/**
 * The statement that sets the columns ($2 and on) of a user's settings ($1) and leaves all others alone; columns that
 * a new row does not get have their defaults.
 */
export function settingsUpsert(columns: readonly SettingsColumn[]): string {
  const inserted = ['user_id', ...columns];
  const parameters = inserted.map((_column, index) => `$${index + 1}`);
  const updates = columns.map((column) => `${column} = excluded.${column}`);
  const onConflict =
    updates.length === 0 ? 'NOTHING' : `UPDATE SET ${updates.join(', ')}, updated_at = now()`;
  return `INSERT INTO settings (${inserted.join(', ')}) VALUES (${parameters.join(', ')}) ON CONFLICT (user_id) DO ${onConflict}`;
}
