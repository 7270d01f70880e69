import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An identity has no foreign key to its user: that of a removed one stays, and stays refused. */
export class AddIdentities1766740000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE user_identities (
        id uuid PRIMARY KEY,
        user_id uuid NOT NULL,
        issuer text NOT NULL,
        subject text NOT NULL,
        email_verified boolean NOT NULL,
        has_role boolean NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_seen_at timestamptz NOT NULL,
        CONSTRAINT user_identities_issuer_subject_key UNIQUE (issuer, subject));
      CREATE INDEX user_identities_user_id_idx ON user_identities (user_id);
      ALTER TABLE users ADD COLUMN reads_only boolean NOT NULL DEFAULT false;
      ALTER TABLE sessions
        ADD COLUMN identity_id uuid REFERENCES user_identities (id) ON DELETE CASCADE,
        ADD COLUMN sid text, ADD COLUMN refresh_token text, ADD COLUMN renewed_at timestamptz;
      CREATE INDEX sessions_identity_id_idx ON sessions (identity_id) WHERE identity_id IS NOT NULL`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE sessions DROP COLUMN identity_id, DROP COLUMN sid, DROP COLUMN refresh_token, DROP COLUMN renewed_at;
      ALTER TABLE users DROP COLUMN reads_only;
      DROP TABLE user_identities`);
  }
}
