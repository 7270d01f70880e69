export const SANDBOX_TABLES = `
  CREATE TABLE sandbox_hosts (
    id text CONSTRAINT sandbox_hosts_pkey PRIMARY KEY,
    address text,
    seen_at timestamptz NOT NULL
  );

  CREATE TABLE sandboxes (
    id text CONSTRAINT sandboxes_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT sandboxes_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    spec_id text NOT NULL,
    status text NOT NULL,
    status_detail text,
    backend text NOT NULL,
    host_id text NOT NULL,
    session_key text NOT NULL,
    session_key_hash bytea NOT NULL,
    address text,
    port_addresses jsonb,
    expose_port integer,
    generation integer NOT NULL DEFAULT 0,
    stopped_generation integer,
    overrides jsonb,
    lease_owner text,
    lease_until timestamptz,
    deadline_at timestamptz,
    keep_alive_until timestamptz,
    traffic_at timestamptz,
    last_activity_at timestamptz NOT NULL,
    traceparent text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX sandboxes_user_id_created_at_idx ON sandboxes (user_id, created_at, id);
  CREATE INDEX sandboxes_host_id_status_idx ON sandboxes (host_id, status);
  CREATE INDEX sandboxes_status_backend_idx ON sandboxes (status, backend);
  CREATE INDEX sandboxes_stopped_idx ON sandboxes (host_id, updated_at)
    WHERE status IN ('PAUSED', 'ERROR', 'MISSING');
  CREATE UNIQUE INDEX sandboxes_session_key_hash_key ON sandboxes (session_key_hash);
  CREATE UNIQUE INDEX sandboxes_host_id_expose_port_key ON sandboxes (host_id, expose_port)
    WHERE expose_port IS NOT NULL;

  CREATE TABLE warm_sandboxes (
    id text CONSTRAINT warm_sandboxes_pkey PRIMARY KEY,
    spec_id text NOT NULL,
    fingerprint text NOT NULL,
    status text NOT NULL,
    backend text NOT NULL,
    host_id text NOT NULL,
    created_at timestamptz NOT NULL
  );
  CREATE INDEX warm_sandboxes_host_id_idx ON warm_sandboxes (host_id, fingerprint, status, created_at);

  CREATE TABLE orphaned_sandboxes (
    id text CONSTRAINT orphaned_sandboxes_pkey PRIMARY KEY,
    claimed_until timestamptz NOT NULL
  );`;

/** BRIN, since an ordered index would tempt a listing of a user's tasks to walk through those of all users. */
export const CONVERSATION_TABLES = `
  CREATE TABLE app_conversations (
    id uuid CONSTRAINT app_conversations_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT app_conversations_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    sandbox_id text NOT NULL,
    sandbox_generation integer NOT NULL DEFAULT 0,
    parent_conversation_id uuid,
    adopted boolean NOT NULL DEFAULT false,
    selected_repository text,
    selected_branch text,
    git_provider text,
    working_branch text,
    working_dir text NOT NULL,
    title text,
    title_is_users boolean NOT NULL DEFAULT false,
    trigger text,
    pr_number integer[] NOT NULL DEFAULT '{}',
    pull_requests jsonb NOT NULL DEFAULT '[]',
    agent text,
    agent_kind text,
    llm_model text,
    llm_base_url text,
    llm_profile text,
    public boolean,
    tags jsonb NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    result_schema jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX app_conversations_user_id_created_at_idx ON app_conversations (user_id, created_at, id);
  CREATE INDEX app_conversations_user_id_updated_at_idx ON app_conversations (user_id, updated_at);
  CREATE INDEX app_conversations_sandbox_id_idx ON app_conversations (sandbox_id);
  CREATE INDEX app_conversations_parent_conversation_id_idx ON app_conversations (parent_conversation_id);
  CREATE INDEX app_conversations_tags_idx ON app_conversations USING gin (tags jsonb_path_ops);

  CREATE TABLE app_conversation_start_tasks (
    id uuid CONSTRAINT app_conversation_start_tasks_pkey PRIMARY KEY,
    user_id uuid NOT NULL
      CONSTRAINT app_conversation_start_tasks_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    status text NOT NULL,
    detail text,
    app_conversation_id uuid NOT NULL,
    sandbox_id text NOT NULL,
    host_id text NOT NULL,
    request jsonb NOT NULL,
    request_secrets text,
    notes text[] NOT NULL DEFAULT '{}',
    sandbox_made boolean NOT NULL DEFAULT false,
    working_dir text,
    attempt integer NOT NULL DEFAULT 0,
    trimmed boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX app_conversation_start_tasks_user_id_created_at_idx
    ON app_conversation_start_tasks (user_id, created_at, id);
  CREATE INDEX app_conversation_start_tasks_user_id_updated_at_idx
    ON app_conversation_start_tasks (user_id, updated_at, id);
  CREATE INDEX app_conversation_start_tasks_kept_idx
    ON app_conversation_start_tasks (user_id, updated_at, id) WHERE NOT trimmed;
  CREATE INDEX app_conversation_start_tasks_unfinished_idx
    ON app_conversation_start_tasks (user_id) WHERE status NOT IN ('READY', 'ERROR');
  CREATE INDEX app_conversation_start_tasks_updated_at_idx
    ON app_conversation_start_tasks USING brin (updated_at) WITH (autosummarize = on);
  CREATE INDEX app_conversation_start_tasks_sandbox_id_idx ON app_conversation_start_tasks (sandbox_id);
  CREATE UNIQUE INDEX app_conversation_start_tasks_app_conversation_id_key
    ON app_conversation_start_tasks (app_conversation_id);

  CREATE TABLE removed_conversations (
    id uuid CONSTRAINT removed_conversations_pkey PRIMARY KEY,
    sandbox_id text NOT NULL
      CONSTRAINT removed_conversations_sandbox_id_fkey REFERENCES sandboxes (id) ON DELETE CASCADE
  );
  CREATE INDEX removed_conversations_sandbox_id_idx ON removed_conversations (sandbox_id);

  CREATE TABLE pending_messages (
    id uuid CONSTRAINT pending_messages_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT pending_messages_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    position integer NOT NULL,
    content jsonb NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    after_event_id text,
    created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX pending_messages_user_id_idx ON pending_messages (user_id);
  CREATE UNIQUE INDEX pending_messages_conversation_id_position_key ON pending_messages (conversation_id, position);`;

// Partitions have the unique keys: one of the whole table would need `stored_at`, and then say nothing
// (docs/adr/0044). The default partition takes events while the one of their month is missing.
export const EVENT_TABLES = `
  CREATE TABLE followed_conversations (
    id uuid CONSTRAINT followed_conversations_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT followed_conversations_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    sandbox_id text NOT NULL,
    execution_status text,
    error jsonb,
    metrics jsonb,
    title text,
    result jsonb,
    event_count integer NOT NULL DEFAULT 0,
    last_event_id text,
    follower text,
    follower_until timestamptz,
    opened_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX followed_conversations_user_id_idx ON followed_conversations (user_id);
  CREATE INDEX followed_conversations_sandbox_id_idx ON followed_conversations (sandbox_id);

  CREATE TABLE conversation_events (
    conversation_id uuid NOT NULL CONSTRAINT conversation_events_conversation_id_fkey
      REFERENCES followed_conversations (id) ON DELETE CASCADE,
    seq integer NOT NULL,
    event_id text NOT NULL,
    kind text NOT NULL,
    occurred_at timestamptz NOT NULL,
    body json NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now()
  ) PARTITION BY RANGE (stored_at);
  DO $$
    DECLARE
      next_month timestamp :=
        date_trunc('month', (now() + interval '7 days') AT TIME ZONE 'UTC') + interval '1 month';
      month timestamp;
      name text;
    BEGIN
      EXECUTE format(
        'CREATE TABLE conversation_events_first PARTITION OF conversation_events (
           CONSTRAINT conversation_events_pkey PRIMARY KEY (conversation_id, seq)
         ) FOR VALUES FROM (MINVALUE) TO (%L)', next_month || '+00');
      FOR month IN SELECT generate_series(
        next_month, (now() + interval '75 days') AT TIME ZONE 'UTC', interval '1 month') LOOP
        name := to_char(month, '"conversation_events_"YYYY_MM');
        EXECUTE format(
          'CREATE TABLE %I PARTITION OF conversation_events (
             CONSTRAINT %I PRIMARY KEY (conversation_id, seq)
           ) FOR VALUES FROM (%L) TO (%L)',
          name, name || '_pkey', month || '+00', month + interval '1 month' || '+00');
        EXECUTE format(
          'CREATE UNIQUE INDEX %I ON %I (conversation_id, event_id)', name || '_event_id_key', name);
      END LOOP;
    END $$;
  CREATE UNIQUE INDEX conversation_events_conversation_id_event_id_key
    ON conversation_events_first (conversation_id, event_id);
  CREATE TABLE conversation_events_default PARTITION OF conversation_events (
    CONSTRAINT conversation_events_default_pkey PRIMARY KEY (conversation_id, seq)
  ) DEFAULT;
  CREATE UNIQUE INDEX conversation_events_default_event_id_key
    ON conversation_events_default (conversation_id, event_id);
  CREATE INDEX conversation_events_default_stored_at_idx ON conversation_events_default (stored_at);`;
