export const INSTALLATION_TABLE = `
  CREATE TABLE service_state (
    id integer CONSTRAINT service_state_pkey PRIMARY KEY,
    instance_id uuid NOT NULL,
    key_check text
  );
  INSERT INTO service_state (id, instance_id) VALUES (1, gen_random_uuid());`;

export const USER_TABLES = `
  CREATE TABLE users (
    id uuid CONSTRAINT users_pkey PRIMARY KEY,
    email text NOT NULL CONSTRAINT users_email_key UNIQUE,
    name text,
    is_admin boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX users_administrators_idx ON users (id) WHERE is_admin;

  CREATE TABLE api_keys (
    id text CONSTRAINT api_keys_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT api_keys_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    name text NOT NULL,
    secret_hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz
  );
  CREATE INDEX api_keys_user_id_idx ON api_keys (user_id);

  CREATE TABLE sessions (
    id text CONSTRAINT sessions_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT sessions_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    api_key_id text CONSTRAINT sessions_api_key_id_fkey REFERENCES api_keys (id) ON DELETE CASCADE,
    secret_hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL
  );
  CREATE INDEX sessions_user_id_idx ON sessions (user_id);
  CREATE INDEX sessions_api_key_id_idx ON sessions (api_key_id);

  CREATE TABLE idempotency_keys (
    user_id uuid CONSTRAINT idempotency_keys_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    scope text,
    key text,
    request_hash bytea NOT NULL,
    resource_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (user_id, scope, key)
  );
  CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys (created_at);`;

/** Refers to no other table, and refuses to have its rows changed. */
export const AUDIT_TABLE = `
  CREATE TABLE audit_entries (
    at timestamptz DEFAULT clock_timestamp(),
    id uuid,
    action text NOT NULL,
    outcome text NOT NULL,
    actor_kind text NOT NULL,
    actor_user_id uuid,
    actor_key_id text,
    resource_id text,
    owner_user_id uuid,
    request_id text,
    caller_request_id text,
    client_address text,
    details jsonb NOT NULL,
    CONSTRAINT audit_entries_pkey PRIMARY KEY (at, id)
  );
  CREATE INDEX audit_entries_actor_idx ON audit_entries (actor_user_id, at, id);
  CREATE INDEX audit_entries_owner_idx ON audit_entries (owner_user_id, at, id);
  CREATE INDEX audit_entries_action_idx ON audit_entries (action, at, id);
  CREATE INDEX audit_entries_resource_idx ON audit_entries (resource_id, at, id);
  CREATE INDEX audit_entries_request_idx ON audit_entries (request_id);
  CREATE INDEX audit_entries_caller_request_idx ON audit_entries (caller_request_id)
    WHERE caller_request_id IS NOT NULL;
  CREATE FUNCTION refuse_audit_changes() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'audit_entries is append only';
      END $$;
  CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR TRUNCATE ON audit_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_changes();`;

export const SETTINGS_TABLES = `
  CREATE TABLE settings (
    user_id uuid CONSTRAINT settings_pkey PRIMARY KEY
      CONSTRAINT settings_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
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
    details text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );

  CREATE TABLE mcp_configs (
    user_id uuid CONSTRAINT mcp_configs_pkey PRIMARY KEY
      CONSTRAINT mcp_configs_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    config jsonb NOT NULL,
    secrets text,
    details text,
    updated_at timestamptz NOT NULL DEFAULT now()
  );

  CREATE TABLE llm_profiles (
    id uuid CONSTRAINT llm_profiles_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT llm_profiles_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    name text NOT NULL,
    config text NOT NULL,
    active boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE UNIQUE INDEX llm_profiles_user_id_name_key ON llm_profiles (user_id, name);

  CREATE TABLE custom_secrets (
    user_id uuid CONSTRAINT custom_secrets_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    name text,
    value text NOT NULL,
    description text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT custom_secrets_pkey PRIMARY KEY (user_id, name)
  );

  CREATE TABLE provider_tokens (
    user_id uuid CONSTRAINT provider_tokens_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    provider text,
    token text NOT NULL,
    host text,
    account_id text,
    verified boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT provider_tokens_pkey PRIMARY KEY (user_id, provider)
  );`;

export const WEBHOOK_TABLES = `
  CREATE TABLE webhook_endpoints (
    id uuid CONSTRAINT webhook_endpoints_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT webhook_endpoints_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    url text NOT NULL,
    description text,
    events text[] NOT NULL,
    secret text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    disabled_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX webhook_endpoints_user_id_idx ON webhook_endpoints (user_id);

  CREATE TABLE webhook_deliveries (
    id uuid CONSTRAINT webhook_deliveries_pkey PRIMARY KEY,
    endpoint_id uuid NOT NULL
      CONSTRAINT webhook_deliveries_endpoint_id_fkey REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
    event_type text NOT NULL,
    data json NOT NULL,
    status text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    dropped integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    next_attempt_at timestamptz,
    last_attempt_at timestamptz,
    last_response_status integer,
    last_error text,
    last_duration_ms integer
  );
  CREATE INDEX webhook_deliveries_endpoint_idx ON webhook_deliveries (endpoint_id, created_at, id);
  CREATE INDEX webhook_deliveries_status_idx ON webhook_deliveries (endpoint_id, status, created_at, id);
  CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (endpoint_id, next_attempt_at)
    WHERE status = 'pending';
  CREATE INDEX webhook_deliveries_created_at_idx ON webhook_deliveries (created_at);`;
