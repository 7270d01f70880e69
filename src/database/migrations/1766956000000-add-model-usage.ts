import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddModelUsage1766956000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE model_usage (
        user_id uuid NOT NULL REFERENCES users (id) ON DELETE CASCADE,
        conversation_id uuid NOT NULL,
        day date NOT NULL,
        model text NOT NULL,
        source text NOT NULL,
        automation_id text,
        calls bigint NOT NULL,
        input_tokens bigint NOT NULL,
        output_tokens bigint NOT NULL,
        cached_tokens bigint NOT NULL,
        unpriced_tokens bigint NOT NULL,
        cost double precision NOT NULL,
        PRIMARY KEY (user_id, conversation_id, day, model, source));
      CREATE INDEX model_usage_day_idx ON model_usage (day, user_id);
      CREATE TABLE egress_meters (
        sandbox_id text NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
        proxy uuid NOT NULL,
        number bigint NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (sandbox_id, proxy))`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE egress_meters; DROP TABLE model_usage');
  }
}
