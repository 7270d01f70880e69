import type { EncryptedColumn } from '../common/crypto/secret-cipher.js';
import { SETTINGS_KEY_COLUMNS, settingsBinding } from './settings-columns.js';

/** What an encrypted custom secret is bound to: copied to another user or name it does not decrypt. */
export function customSecretBinding(userId: string, name: string): string {
  return `custom_secrets.value:${userId}:${name}`;
}

/** Where this feature keeps encrypted records. */
export const SETTINGS_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  ...SETTINGS_KEY_COLUMNS.map((column) => ({
    table: 'settings',
    column,
    keyColumns: ['user_id'],
    binding: ({ user_id = '' }: Record<string, string>) => settingsBinding(column, user_id),
  })),
  {
    table: 'custom_secrets',
    column: 'value',
    keyColumns: ['user_id', 'name'],
    binding: ({ user_id = '', name = '' }) => customSecretBinding(user_id, name),
  },
];
