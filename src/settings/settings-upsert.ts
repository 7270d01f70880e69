import { mcpConfigUpsert } from '../mcp-config/mcp-config-upsert.js';
import type { SettingsColumn } from './settings-columns.js';

/**
 * The statement that sets the columns ($2 and on) of a user's settings ($1) and leaves all others alone; columns that
 * a new row does not get have their defaults.
 */
export function settingsUpsert(columns: readonly SettingsColumn[]): string {
  return upsert(columns, ['$1', ...columns.map((_column, index) => `$${index + 2}`)]);
}

/**
 * {@link settingsUpsert} together with the user's tool servers ($2 shown, $3 secrets; the columns are $4 and on), as one
 * statement: all of it or nothing, in one round trip. Like every writer of several of a user's rows it locks the user's
 * own row first, see `lockUser`; for a user who is gone `user_id` would be null, which the tables refuse.
 */
export function settingsAndMcpUpsert(columns: readonly SettingsColumn[]): string {
  const parameters = columns.map((_column, index) => `$${index + 4}`);
  return `
    WITH owner AS MATERIALIZED (SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE),
    mcp AS (${mcpConfigUpsert('(SELECT id FROM owner)', '$2', '$3')})
    ${upsert(columns, ['(SELECT id FROM owner)', ...parameters])}`;
}

function upsert(columns: readonly SettingsColumn[], values: readonly string[]): string {
  const updates = columns.map((column) => `${column} = excluded.${column}`);
  const onConflict =
    updates.length === 0 ? 'NOTHING' : `UPDATE SET ${updates.join(', ')}, updated_at = now()`;
  return `INSERT INTO settings (${['user_id', ...columns].join(', ')}) VALUES (${values.join(', ')}) ON CONFLICT (user_id) DO ${onConflict}`;
}
