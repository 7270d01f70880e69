import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Users, keys, settings, secrets, MCP configurations, provider tokens and the installation's own row. */
export class CreateUsersSettingsAndTokens1763700000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE service_state (
        id integer NOT NULL,
        instance_id uuid NOT NULL,
        key_check text,
        CONSTRAINT service_state_pkey PRIMARY KEY (id)
      )`);
    await queryRunner.query(`INSERT INTO service_state (id, instance_id) VALUES (1, gen_random_uuid())`);
    await queryRunner.query(`
      CREATE TABLE users (
        id uuid NOT NULL,
        email text NOT NULL,
        name text,
        is_admin boolean NOT NULL DEFAULT false,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT users_pkey PRIMARY KEY (id),
        CONSTRAINT users_email_key UNIQUE (email)
      )`);
    await queryRunner.query(`
      CREATE TABLE api_keys (
        id text NOT NULL,
        user_id uuid NOT NULL,
        name text NOT NULL,
        secret_hash bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz,
        last_used_at timestamptz,
        revoked_at timestamptz,
        CONSTRAINT api_keys_pkey PRIMARY KEY (id),
        CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(`CREATE INDEX api_keys_user_id_idx ON api_keys (user_id)`);
    await queryRunner.query(`
      CREATE TABLE settings (
        user_id uuid NOT NULL,
        language text,
        agent text,
        max_iterations integer,
        security_analyzer text,
        confirmation_mode boolean,
        llm_model text,
        llm_api_key text,
        llm_base_url text,
        remote_runtime_resource_factor integer,
        enable_default_condenser boolean NOT NULL DEFAULT true,
        enable_sound_notifications boolean NOT NULL DEFAULT false,
        enable_proactive_conversation_starters boolean NOT NULL DEFAULT true,
        enable_solvability_analysis boolean NOT NULL DEFAULT true,
        user_consents_to_analytics boolean,
        sandbox_base_container_image text,
        sandbox_runtime_container_image text,
        search_api_key text,
        sandbox_api_key text,
        max_budget_per_task double precision,
        email text,
        email_verified boolean,
        git_user_name text,
        git_user_email text,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT settings_pkey PRIMARY KEY (user_id),
        CONSTRAINT settings_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(`
      CREATE TABLE mcp_configs (
        user_id uuid NOT NULL,
        config jsonb NOT NULL,
        secrets text,
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT mcp_configs_pkey PRIMARY KEY (user_id),
        CONSTRAINT mcp_configs_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(`
      CREATE TABLE custom_secrets (
        user_id uuid NOT NULL,
        name text NOT NULL,
        value text NOT NULL,
        description text,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT custom_secrets_pkey PRIMARY KEY (user_id, name),
        CONSTRAINT custom_secrets_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(`
      CREATE TABLE provider_tokens (
        user_id uuid NOT NULL,
        provider text NOT NULL,
        token text NOT NULL,
        host text,
        account_id text,
        verified boolean NOT NULL DEFAULT true,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT provider_tokens_pkey PRIMARY KEY (user_id, provider),
        CONSTRAINT provider_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of [
      'provider_tokens',
      'custom_secrets',
      'mcp_configs',
      'settings',
      'api_keys',
      'users',
      'service_state',
    ]) {
      await queryRunner.query(`DROP TABLE ${table}`);
    }
  }
}
