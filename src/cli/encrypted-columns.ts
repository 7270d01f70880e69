import type { EncryptedColumn } from '../common/crypto/encrypted-column.js';
import { PROVIDER_TOKEN_ENCRYPTED_COLUMNS } from '../git-providers/tokens/encrypted-columns.js';
import { MCP_CONFIG_ENCRYPTED_COLUMNS } from '../mcp-config/encrypted-columns.js';
import { SETTINGS_ENCRYPTED_COLUMNS } from '../settings/encrypted-columns.js';
import { SANDBOX_ENCRYPTED_COLUMNS } from '../v1/sandboxes/encrypted-columns.js';
import { START_TASK_ENCRYPTED_COLUMNS } from '../v1/app-conversations/start/request-secrets.js';

/** Every place in the database that holds encrypted records, except for the key check itself. */
export const ENCRYPTED_COLUMNS: readonly EncryptedColumn[] = [
  ...SETTINGS_ENCRYPTED_COLUMNS,
  ...MCP_CONFIG_ENCRYPTED_COLUMNS,
  ...PROVIDER_TOKEN_ENCRYPTED_COLUMNS,
  ...SANDBOX_ENCRYPTED_COLUMNS,
  ...START_TASK_ENCRYPTED_COLUMNS,
];
