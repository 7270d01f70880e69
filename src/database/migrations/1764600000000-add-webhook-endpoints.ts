import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Addresses of users that are told what happens, and what was sent to them. */
export class AddWebhookEndpoints1764600000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE webhook_endpoints (
        id uuid CONSTRAINT webhook_endpoints_pkey PRIMARY KEY,
        user_id uuid NOT NULL CONSTRAINT webhook_endpoints_user_id_fkey REFERENCES users (id) ON DELETE CASCADE,
        url text NOT NULL,
        description text,
        events text[] NOT NULL,
        secret text NOT NULL,
        enabled boolean NOT NULL DEFAULT true,
        disabled_reason text,
        created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now()
      )`);
    await queryRunner.query('CREATE INDEX webhook_endpoints_user_id_idx ON webhook_endpoints (user_id)');
    await queryRunner.query(`
      CREATE TABLE webhook_deliveries (
        id uuid CONSTRAINT webhook_deliveries_pkey PRIMARY KEY,
        endpoint_id uuid NOT NULL
          CONSTRAINT webhook_deliveries_endpoint_id_fkey REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
        event_type text NOT NULL,
        data json NOT NULL,
        status text NOT NULL,
        attempts integer NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL,
        next_attempt_at timestamptz,
        last_attempt_at timestamptz,
        last_response_status integer,
        last_error text,
        last_duration_ms integer
      )`);
    await queryRunner.query(
      'CREATE INDEX webhook_deliveries_endpoint_idx ON webhook_deliveries (endpoint_id, created_at, id)',
    );
    await queryRunner.query(
      `CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (endpoint_id, next_attempt_at)
       WHERE status = 'pending'`,
    );
    await queryRunner.query(
      'CREATE INDEX webhook_deliveries_created_at_idx ON webhook_deliveries (created_at)',
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE webhook_deliveries');
    await queryRunner.query('DROP TABLE webhook_endpoints');
  }
}
