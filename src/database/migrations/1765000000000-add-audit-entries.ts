import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Who did what. The table refers to no other, and refuses to have its rows changed. */
export class AddAuditEntries1765000000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE audit_entries (
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        id uuid NOT NULL,
        action text NOT NULL,
        outcome text NOT NULL,
        actor_kind text NOT NULL,
        actor_user_id uuid,
        actor_key_id text,
        resource_id text,
        owner_user_id uuid,
        request_id text,
        client_address text,
        details jsonb NOT NULL,
        CONSTRAINT audit_entries_pkey PRIMARY KEY (at, id)
      )`);
    await queryRunner.query('CREATE INDEX audit_entries_actor_idx ON audit_entries (actor_user_id, at, id)');
    await queryRunner.query('CREATE INDEX audit_entries_owner_idx ON audit_entries (owner_user_id, at, id)');
    await queryRunner.query('CREATE INDEX audit_entries_action_idx ON audit_entries (action, at, id)');
    await queryRunner.query('CREATE INDEX audit_entries_resource_idx ON audit_entries (resource_id, at, id)');
    await queryRunner.query('CREATE INDEX audit_entries_request_idx ON audit_entries (request_id)');
    await queryRunner.query(`
      CREATE FUNCTION refuse_audit_changes() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        RAISE EXCEPTION 'audit_entries is append only';
      END $$`);
    await queryRunner.query(`
      CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR TRUNCATE ON audit_entries
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_changes()`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE audit_entries');
    await queryRunner.query('DROP FUNCTION refuse_audit_changes()');
  }
}
