import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeepAuthoritiesOfWarmSandboxes1766974000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE warm_sandboxes ADD COLUMN egress_authority text');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE warm_sandboxes DROP COLUMN egress_authority');
  }
}
