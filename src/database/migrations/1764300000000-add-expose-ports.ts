import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A sandbox keeps the port at which clients reach its agent server, over pauses and restarts of the service. */
export class AddExposePorts1764300000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE sandboxes ADD COLUMN expose_port integer`);
    await queryRunner.query(
      `CREATE UNIQUE INDEX sandboxes_host_id_expose_port_key ON sandboxes (host_id, expose_port)
       WHERE expose_port IS NOT NULL`,
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP INDEX sandboxes_host_id_expose_port_key`);
    await queryRunner.query(`ALTER TABLE sandboxes DROP COLUMN expose_port`);
  }
}
