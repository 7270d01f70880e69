import type { EncryptedColumn } from '../common/crypto/encrypted-column.js';
import { mcpConfigBinding } from './mcp-config-binding.js';

/** Where this feature keeps encrypted records. */
export const MCP_CONFIG_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'mcp_configs',
    column: 'secrets',
    keyColumns: ['user_id'],
    binding: ({ user_id = '' }) => mcpConfigBinding(user_id),
  },
];
