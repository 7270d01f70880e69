import type { MigrationInterface, QueryRunner } from 'typeorm';

const AUTOMATION_TABLES = `
  CREATE TABLE automations (
    id uuid CONSTRAINT automations_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT automations_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    org_id uuid NOT NULL,
    name text NOT NULL,
    description text,
    state text NOT NULL,
    trigger jsonb NOT NULL,
    next_run_at timestamptz,
    work jsonb NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    last_triggered_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX automations_owner_idx ON automations (user_id, org_id, created_at, id);
  CREATE INDEX automations_due_idx ON automations (next_run_at) WHERE state = 'ACTIVE' AND next_run_at IS NOT NULL;
  CREATE INDEX automations_org_idx ON automations (org_id);

  CREATE TABLE automation_runs (
    id uuid CONSTRAINT automation_runs_pkey PRIMARY KEY,
    automation_id uuid NOT NULL
      CONSTRAINT automation_runs_automation_id_fkey REFERENCES automations (id) ON DELETE CASCADE,
    user_id uuid NOT NULL,
    cause text NOT NULL,
    trigger_source text NOT NULL,
    status text NOT NULL,
    work jsonb NOT NULL,
    conversation_ids uuid[] NOT NULL DEFAULT '{}',
    start_task_ids uuid[],
    tasks jsonb,
    stop_pending boolean NOT NULL DEFAULT false,
    error_detail text,
    cost double precision,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    completed_at timestamptz
  );
  CREATE UNIQUE INDEX automation_runs_cause_key ON automation_runs (automation_id, cause);
  CREATE INDEX automation_runs_list_idx ON automation_runs (automation_id, created_at, id);
  CREATE INDEX automation_runs_active_idx ON automation_runs (automation_id, status)
    WHERE status IN ('PENDING', 'RUNNING');
  CREATE INDEX automation_runs_stop_idx ON automation_runs (created_at) WHERE stop_pending;
  CREATE INDEX automation_runs_created_at_idx ON automation_runs (created_at);`;

const EVENT_TABLES = `
  CREATE TABLE automation_webhooks (
    id uuid CONSTRAINT automation_webhooks_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT automation_webhooks_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    org_id uuid NOT NULL,
    name text NOT NULL,
    source text NOT NULL,
    event_key_expr text NOT NULL,
    signature_header text NOT NULL,
    signature_scheme text NOT NULL,
    event_id_header text,
    enabled boolean NOT NULL DEFAULT true,
    secret text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE UNIQUE INDEX automation_webhooks_source_key ON automation_webhooks (org_id, source);
  CREATE INDEX automation_webhooks_user_id_idx ON automation_webhooks (user_id);

  CREATE TABLE automation_events (
    id uuid CONSTRAINT automation_events_pkey PRIMARY KEY,
    user_id uuid NOT NULL CONSTRAINT automation_events_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
    org_id uuid NOT NULL,
    source text NOT NULL,
    delivery_id text NOT NULL,
    body_digest text,
    event_key text NOT NULL,
    payload json NOT NULL,
    outcomes jsonb NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE UNIQUE INDEX automation_events_delivery_key ON automation_events (org_id, source, delivery_id);
  CREATE UNIQUE INDEX automation_events_body_key ON automation_events (org_id, source, body_digest);
  CREATE INDEX automation_events_list_idx ON automation_events (org_id, created_at, id);
  CREATE INDEX automation_events_created_at_idx ON automation_events (created_at);
  CREATE INDEX automation_events_user_id_idx ON automation_events (user_id);`;

const FOLLOW_TABLE = `
  CREATE TABLE followed_pull_requests (
    conversation_id uuid CONSTRAINT followed_pull_requests_pkey PRIMARY KEY
      CONSTRAINT followed_pull_requests_conversation_id_fkey REFERENCES app_conversations (id) ON DELETE CASCADE,
    user_id uuid NOT NULL,
    wishes jsonb NOT NULL,
    state text NOT NULL,
    round integer NOT NULL DEFAULT 0,
    reason text,
    provider text,
    repository text,
    number integer,
    url text,
    head_sha text,
    known jsonb NOT NULL DEFAULT '{}',
    message_id uuid,
    unanswered jsonb NOT NULL DEFAULT '[]',
    idle_since timestamptz,
    next_look_at timestamptz,
    leased_until timestamptz,
    attempt integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE INDEX followed_pull_requests_due_idx ON followed_pull_requests (next_look_at) WHERE next_look_at IS NOT NULL;
  CREATE INDEX followed_pull_requests_user_id_idx ON followed_pull_requests (user_id, repository);`;

const DEVICE_TABLE = `
  CREATE TABLE device_logins (
    device_code_hash bytea CONSTRAINT device_logins_pkey PRIMARY KEY,
    user_code_hash bytea NOT NULL,
    client text NOT NULL,
    address text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    polled_at timestamptz,
    interval_seconds integer NOT NULL,
    is_denied boolean NOT NULL DEFAULT false,
    api_key_id text CONSTRAINT device_logins_api_key_id_fkey REFERENCES api_keys (id) ON DELETE CASCADE
  );
  CREATE UNIQUE INDEX device_logins_user_code_key ON device_logins (user_code_hash);
  CREATE INDEX device_logins_address_idx ON device_logins (address, created_at);
  CREATE INDEX device_logins_created_at_idx ON device_logins (created_at);
  CREATE INDEX device_logins_api_key_id_idx ON device_logins (api_key_id);`;

const NEW_COLUMNS = `
  ALTER TABLE webhook_endpoints ADD COLUMN failing_since timestamptz,
    ADD COLUMN previous_secret text, ADD COLUMN previous_until timestamptz;
  ALTER TABLE provider_tokens ADD COLUMN claimed_until timestamptz;`;

const DROP_NEW_COLUMNS = `
  ALTER TABLE provider_tokens DROP COLUMN claimed_until;
  ALTER TABLE webhook_endpoints DROP COLUMN failing_since, DROP COLUMN previous_secret, DROP COLUMN previous_until;`;

export class AddAutomations1766400000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(AUTOMATION_TABLES);
    await queryRunner.query(EVENT_TABLES);
    await queryRunner.query(FOLLOW_TABLE);
    await queryRunner.query(DEVICE_TABLE);
    await queryRunner.query(NEW_COLUMNS);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(DROP_NEW_COLUMNS);
    await queryRunner.query(
      'DROP TABLE device_logins, followed_pull_requests, automation_events, automation_webhooks, automation_runs, automations',
    );
  }
}
