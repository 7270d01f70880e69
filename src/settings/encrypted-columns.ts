import type { EncryptedColumn } from '../common/crypto/encrypted-column.js';
import { customSecretBinding } from './custom-secret-binding.js';
import { settingsBinding } from './settings-binding.js';
import { SETTINGS_KEY_COLUMNS } from './settings-columns.js';

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
