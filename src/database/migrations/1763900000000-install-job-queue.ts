import type { MigrationInterface, QueryRunner } from 'typeorm';

const SCHEMA = 'pgboss';

/**
 * The tables of pg-boss, as the installed version creates them; later versions migrate them by themselves. A migration
 * rather than pg-boss's first start, because our migration lock covers replicas that start together.
 */
export class InstallJobQueue1763900000000 implements MigrationInterface {
  /** pg-boss's statements open a transaction of their own. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    const [installed] = await queryRunner.manager.query<{ version: string | null }[]>(
      'SELECT to_regclass($1) AS version',
      [`${SCHEMA}.version`],
    );
    if (installed?.version) {
      return;
    }
    // Loaded only when there is something to install, since it takes long to load.
    const { getConstructionPlans } = await import('pg-boss');
    await queryRunner.query(getConstructionPlans(SCHEMA));
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP SCHEMA ${SCHEMA} CASCADE`);
  }
}
