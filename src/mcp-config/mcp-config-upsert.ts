/**
 * The statement that replaces a user's tool servers.
 *
 * @param owner SQL of the user's id; `config` and `secrets` likewise SQL, parameters mostly
 */
export function mcpConfigUpsert(owner: string, config: string, secrets: string): string {
  return `
  INSERT INTO mcp_configs (user_id, config, secrets)
  VALUES (${owner}, ${config}, ${secrets})
  ON CONFLICT (user_id) DO UPDATE
  SET config = excluded.config, secrets = excluded.secrets, updated_at = now()`;
}
