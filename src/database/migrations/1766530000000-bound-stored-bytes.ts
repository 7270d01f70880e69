import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What was stored before counts as nothing, since reading all of it would take long. */
const SIZES = `
  ALTER TABLE followed_conversations ADD COLUMN event_bytes bigint NOT NULL DEFAULT 0,
    ADD COLUMN is_full boolean NOT NULL DEFAULT false,
    ADD COLUMN unread_messages integer NOT NULL DEFAULT 0, ADD COLUMN unread_bytes integer NOT NULL DEFAULT 0;
  ALTER TABLE automation_events ALTER COLUMN payload DROP NOT NULL, ADD COLUMN bytes integer NOT NULL DEFAULT 0;
  CREATE INDEX automation_events_idle_idx ON automation_events (org_id, source, created_at)
    WHERE payload IS NOT NULL AND outcomes = '[]'::jsonb;
  UPDATE automation_runs SET work = jsonb_build_object('timeout', work->'timeout')
    WHERE status NOT IN ('PENDING', 'RUNNING');`;

const MAKERS = `
  ALTER TABLE api_keys ADD COLUMN made_by_key text;
  ALTER TABLE automations ADD COLUMN made_by_key text;
  ALTER TABLE automation_webhooks ADD COLUMN made_by_key text;
  ALTER TABLE webhook_endpoints ADD COLUMN made_by_key text;
  CREATE INDEX api_keys_made_by_key_idx ON api_keys (made_by_key);`;

const ORIGINS = `
  ALTER TABLE automation_webhooks ADD COLUMN writers_expr text;
  ALTER TABLE automation_runs ADD COLUMN actor text;`;

const TABLES = ['api_keys', 'automations', 'automation_webhooks', 'webhook_endpoints'];

/** A browser's session stands for the key that it was begun with. */
const knownMakers = (table: string): string => `
  UPDATE ${table} AS made SET made_by_key = coalesce(s.api_key_id, e.actor_key_id)
  FROM audit_entries e LEFT JOIN sessions s ON s.id = e.actor_key_id
  WHERE e.action = '${table.slice(0, -1)}.create' AND e.resource_id = made.id::text AND e.actor_key_id IS NOT NULL`;

export class BoundStoredBytes1766530000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(SIZES);
    await queryRunner.query(MAKERS);
    await queryRunner.query(ORIGINS);
    for (const table of TABLES) {
      await queryRunner.query(knownMakers(table));
    }
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const table of TABLES) {
      await queryRunner.query(`ALTER TABLE ${table} DROP COLUMN made_by_key`);
    }
    await queryRunner.query(`
      ALTER TABLE automation_runs DROP COLUMN actor;
      ALTER TABLE automation_webhooks DROP COLUMN writers_expr;
      DROP INDEX automation_events_idle_idx;
      UPDATE automation_events SET payload = 'null' WHERE payload IS NULL;
      ALTER TABLE automation_events ALTER COLUMN payload SET NOT NULL, DROP COLUMN bytes;
      ALTER TABLE followed_conversations DROP COLUMN event_bytes, DROP COLUMN is_full, DROP COLUMN unread_messages, DROP COLUMN unread_bytes`);
  }
}
