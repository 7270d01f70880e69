import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LeaseFollowedPullRequests1766620000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE followed_pull_requests ADD COLUMN leased_by text;
      CREATE INDEX followed_pull_requests_leased_idx ON followed_pull_requests (leased_until) WHERE leased_until IS NOT NULL`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX followed_pull_requests_leased_idx;
      ALTER TABLE followed_pull_requests DROP COLUMN leased_by`);
  }
}
