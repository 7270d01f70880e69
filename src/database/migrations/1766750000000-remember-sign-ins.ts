import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Keys of devices from before they were marked have the name that the service gave them. */
export class RememberSignIns1766750000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE user_identities ADD COLUMN role_at timestamptz;
      ALTER TABLE api_keys ADD COLUMN identity_id uuid, ADD COLUMN sid text;
      CREATE INDEX api_keys_identity_id_idx ON api_keys (identity_id) WHERE identity_id IS NOT NULL;
      UPDATE api_keys k SET identity_id = s.identity_id, sid = s.sid FROM sessions s
      WHERE s.id = k.made_by_key AND s.identity_id IS NOT NULL;
      UPDATE api_keys k SET of_device = true
      WHERE NOT of_device AND (name ~ '^[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)? at [0-9a-f.:]+$'
        OR EXISTS (SELECT FROM device_logins WHERE api_key_id = k.id));
      CREATE TABLE issuer_logouts (
        id text PRIMARY KEY, issuer text NOT NULL, subject text, sid text,
        issued_at timestamptz NOT NULL, received_at timestamptz NOT NULL)`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE issuer_logouts;
      DROP INDEX api_keys_identity_id_idx;
      ALTER TABLE api_keys DROP COLUMN identity_id, DROP COLUMN sid;
      ALTER TABLE user_identities DROP COLUMN role_at`);
  }
}
