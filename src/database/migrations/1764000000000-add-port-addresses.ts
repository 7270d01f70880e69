import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Addresses of the ports that sandboxes have besides their agent server's. */
export class AddPortAddresses1764000000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE sandboxes ADD COLUMN port_addresses jsonb`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`ALTER TABLE sandboxes DROP COLUMN port_addresses`);
  }
}
