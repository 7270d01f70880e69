import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Stored models, and what nested settings and tool servers have beyond the columns of the flat ones. All of it may hold
 * keys, so it is encrypted as a whole.
 */
export class AddProfilesAndDetails1764500000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE settings ADD COLUMN details text`);
    await queryRunner.query(`ALTER TABLE mcp_configs ADD COLUMN details text`);
    await queryRunner.query(`ALTER TABLE app_conversations ADD COLUMN llm_profile text`);
    await queryRunner.query(`
      CREATE TABLE llm_profiles (
        id uuid NOT NULL,
        user_id uuid NOT NULL,
        name text NOT NULL,
        config text NOT NULL,
        active boolean NOT NULL DEFAULT false,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(),
        CONSTRAINT llm_profiles_pkey PRIMARY KEY (id),
        CONSTRAINT llm_profiles_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
      )`);
    await queryRunner.query(
      `CREATE UNIQUE INDEX llm_profiles_user_id_name_key ON llm_profiles (user_id, name)`,
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE llm_profiles`);
    await queryRunner.query(`ALTER TABLE app_conversations DROP COLUMN llm_profile`);
    await queryRunner.query(`ALTER TABLE mcp_configs DROP COLUMN details`);
    await queryRunner.query(`ALTER TABLE settings DROP COLUMN details`);
  }
}
