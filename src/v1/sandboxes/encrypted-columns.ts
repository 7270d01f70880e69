import type { EncryptedColumn } from '../../common/crypto/encrypted-column.js';
import { sessionKeyBinding } from './sandbox-session-key.js';

/** Where this feature keeps encrypted records. */
export const SANDBOX_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'sandboxes',
    column: 'session_key',
    keyColumns: ['id'],
    binding: ({ id = '' }) => sessionKeyBinding(id),
  },
];
