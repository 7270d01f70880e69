import type { EncryptedColumn } from '../../common/crypto/encrypted-column.js';
import { providerTokenBinding } from './provider-token-binding.js';

/** Where this feature keeps encrypted records. */
export const PROVIDER_TOKEN_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'provider_tokens',
    column: 'token',
    keyColumns: ['user_id', 'provider'],
    binding: ({ user_id = '', provider = '' }) => providerTokenBinding(user_id, provider),
  },
];
