import type { MigrationInterface, QueryRunner } from 'typeorm';

export class LeaseWebhookDeliveries1766600000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE webhook_deliveries ADD COLUMN leased_by text, ADD COLUMN leased_until timestamptz;
      CREATE INDEX webhook_deliveries_leased_idx ON webhook_deliveries (leased_until) WHERE leased_until IS NOT NULL`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE webhook_deliveries DROP COLUMN leased_by, DROP COLUMN leased_until');
  }
}
