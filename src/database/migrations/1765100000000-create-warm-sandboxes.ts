import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Sandboxes that are started before anybody asks for one. They have no owner and no key, so they are no rows of `sandboxes`. */
export class CreateWarmSandboxes1765100000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE warm_sandboxes (
        id text CONSTRAINT warm_sandboxes_pkey PRIMARY KEY,
        spec_id text NOT NULL,
        fingerprint text NOT NULL,
        status text NOT NULL,
        backend text NOT NULL,
        host_id text NOT NULL,
        created_at timestamptz NOT NULL
      )`);
    await queryRunner.query(
      `CREATE INDEX warm_sandboxes_host_id_idx ON warm_sandboxes (host_id, fingerprint, status, created_at)`,
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE warm_sandboxes`);
  }
}
