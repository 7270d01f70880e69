import type { SettingsKeyColumn } from './settings-columns.js';

/** What an encrypted key is bound to: copied to another user or column it does not decrypt. */
export function settingsBinding(column: SettingsKeyColumn, userId: string): string {
  return `settings.${column}:${userId}`;
}
