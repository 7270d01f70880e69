import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sandboxes and their hosts, conversations, their start tasks and events, and the keys of repeatable requests. */
export class CreateConversationsAndSandboxes1763800000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE sandbox_hosts (
        id text NOT NULL,
        address text,
        seen_at timestamptz NOT NULL,
        CONSTRAINT sandbox_hosts_pkey PRIMARY KEY (id)
      )`);
    await queryRunner.query(`
      CREATE TABLE sandboxes (
        id text NOT NULL,
        user_id uuid NOT NULL,
        spec_id text NOT NULL,
        status text NOT NULL,
        status_detail text,
        backend text NOT NULL,
        host_id text NOT NULL,
        session_key text NOT NULL,
        session_key_hash bytea NOT NULL,
        address text,
        generation integer NOT NULL DEFAULT 0,
        wishes jsonb,
        lease_owner text,
        lease_until timestamptz,
        deadline_at timestamptz,
        held_until timestamptz,
        traffic_at timestamptz,
        last_activity_at timestamptz NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT sandboxes_pkey PRIMARY KEY (id),
        CONSTRAINT sandboxes_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(
      `CREATE INDEX sandboxes_user_id_created_at_idx ON sandboxes (user_id, created_at, id)`,
    );
    await queryRunner.query(`CREATE INDEX sandboxes_host_id_status_idx ON sandboxes (host_id, status)`);
    await queryRunner.query(
      `CREATE UNIQUE INDEX sandboxes_session_key_hash_key ON sandboxes (session_key_hash)`,
    );
    await queryRunner.query(`
      CREATE TABLE app_conversations (
        id uuid NOT NULL,
        user_id uuid NOT NULL,
        sandbox_id text NOT NULL,
        selected_repository text,
        selected_branch text,
        git_provider text,
        title text,
        title_is_users boolean NOT NULL DEFAULT false,
        trigger text,
        pr_number integer[] NOT NULL DEFAULT '{}',
        llm_model text,
        parent_conversation_id uuid,
        public boolean,
        tags jsonb NOT NULL DEFAULT '{}',
        working_dir text NOT NULL,
        sandbox_generation integer NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT app_conversations_pkey PRIMARY KEY (id),
        CONSTRAINT app_conversations_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(
      `CREATE INDEX app_conversations_user_id_created_at_idx ON app_conversations (user_id, created_at, id)`,
    );
    await queryRunner.query(
      `CREATE INDEX app_conversations_sandbox_id_idx ON app_conversations (sandbox_id)`,
    );
    await queryRunner.query(`
      CREATE INDEX app_conversations_parent_conversation_id_idx ON app_conversations (parent_conversation_id)`);
    await queryRunner.query(`
      CREATE TABLE app_conversation_start_tasks (
        id uuid NOT NULL,
        user_id uuid NOT NULL,
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
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT app_conversation_start_tasks_pkey PRIMARY KEY (id),
        CONSTRAINT app_conversation_start_tasks_user_id_fkey
          FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(`
      CREATE INDEX app_conversation_start_tasks_user_id_created_at_idx
      ON app_conversation_start_tasks (user_id, created_at, id)`);
    await queryRunner.query(`
      CREATE UNIQUE INDEX app_conversation_start_tasks_app_conversation_id_key
      ON app_conversation_start_tasks (app_conversation_id)`);
    await queryRunner.query(`
      CREATE TABLE followed_conversations (
        id uuid NOT NULL,
        user_id uuid NOT NULL,
        sandbox_id text NOT NULL,
        execution_status text,
        metrics jsonb,
        title text,
        event_count integer NOT NULL DEFAULT 0,
        last_event_id text,
        follower text,
        follower_until timestamptz,
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT followed_conversations_pkey PRIMARY KEY (id),
        CONSTRAINT followed_conversations_user_id_fkey
          FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(
      `CREATE INDEX followed_conversations_sandbox_id_idx ON followed_conversations (sandbox_id)`,
    );
    await queryRunner.query(`
      CREATE TABLE conversation_events (
        conversation_id uuid NOT NULL,
        seq integer NOT NULL,
        event_id text NOT NULL,
        kind text NOT NULL,
        occurred_at timestamptz NOT NULL,
        body json NOT NULL,
        CONSTRAINT conversation_events_pkey PRIMARY KEY (conversation_id, seq),
        CONSTRAINT conversation_events_conversation_id_fkey
          FOREIGN KEY (conversation_id) REFERENCES followed_conversations (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(`
      CREATE UNIQUE INDEX conversation_events_conversation_id_event_id_key
      ON conversation_events (conversation_id, event_id)`);
    await queryRunner.query(`
      CREATE TABLE idempotency_keys (
        user_id uuid NOT NULL,
        scope text NOT NULL,
        key text NOT NULL,
        request_hash bytea NOT NULL,
        resource_id text NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT idempotency_keys_pkey PRIMARY KEY (user_id, scope, key),
        CONSTRAINT idempotency_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(`CREATE INDEX idempotency_keys_created_at_idx ON idempotency_keys (created_at)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of [
      'idempotency_keys',
      'conversation_events',
      'followed_conversations',
      'app_conversation_start_tasks',
      'app_conversations',
      'sandboxes',
      'sandbox_hosts',
    ]) {
      await queryRunner.query(`DROP TABLE ${table}`);
    }
  }
}
