import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sandboxes without a row that a replica is removing, so that the others of its host do not. */
export class AddOrphanedSandboxes1765200000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE orphaned_sandboxes (
        id text NOT NULL,
        claimed_until timestamptz NOT NULL,
        CONSTRAINT orphaned_sandboxes_pkey PRIMARY KEY (id))`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE orphaned_sandboxes`);
  }
}
