import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LimitKeysToRepositories1766951000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE api_keys ADD COLUMN repositories text[]');
    // What a key may say of a repository: its name, and each group above it (src/auth/key-repositories.ts).
    await queryRunner.query(`
      CREATE FUNCTION repository_entries(provider text, path text) RETURNS text[]
        LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
          SELECT array_agg(provider || ':' || entry) FROM (
            SELECT lower(path COLLATE "C") AS entry
            UNION ALL
            SELECT array_to_string((string_to_array(lower(path COLLATE "C"), '/'))[1:above], '/') || '/*'
            FROM generate_series(1, cardinality(string_to_array(path, '/')) - 1) AS above) AS entries
        $$`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP FUNCTION repository_entries(text, text)');
    // A key that was for some repositories would be one for all of them.
    await queryRunner.query('DELETE FROM api_keys WHERE repositories IS NOT NULL');
    await queryRunner.query('ALTER TABLE api_keys DROP COLUMN repositories');
  }
}
