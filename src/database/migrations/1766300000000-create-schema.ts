import type { MigrationInterface, QueryRunner } from 'typeorm';
import { CONVERSATION_TABLES, EVENT_TABLES, SANDBOX_TABLES } from './1766300000000-conversation-tables.js';
import {
  AUDIT_TABLE,
  INSTALLATION_TABLE,
  SETTINGS_TABLES,
  USER_TABLES,
  WEBHOOK_TABLES,
} from './1766300000000-user-tables.js';

/** Not every provider lets a role create the extension; without it titles are compared one by one. */
const TITLE_SEARCH = `
  DO $$
    BEGIN
      CREATE EXTENSION IF NOT EXISTS pg_trgm;
      CREATE INDEX app_conversations_title_idx ON app_conversations USING gin (title gin_trgm_ops);
    EXCEPTION WHEN OTHERS THEN
      RAISE NOTICE 'pg_trgm: %', SQLERRM;
    END $$;`;

const DROP = `
  DROP TABLE service_state, users, api_keys, sessions, idempotency_keys, audit_entries, settings, mcp_configs, llm_profiles,
    custom_secrets, provider_tokens, webhook_endpoints, webhook_deliveries, sandbox_hosts, sandboxes, warm_sandboxes,
    orphaned_sandboxes, app_conversations, app_conversation_start_tasks, removed_conversations, pending_messages,
    followed_conversations, conversation_events;
  DROP FUNCTION refuse_audit_changes();
  DROP SCHEMA IF EXISTS pgboss CASCADE;`;

export class CreateSchema1766300000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    for (const statements of [
      INSTALLATION_TABLE,
      USER_TABLES,
      AUDIT_TABLE,
      SETTINGS_TABLES,
      WEBHOOK_TABLES,
      SANDBOX_TABLES,
      CONVERSATION_TABLES,
      EVENT_TABLES,
      TITLE_SEARCH,
    ]) {
      await queryRunner.query(statements);
    }
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(DROP);
  }
}
