import type { MigrationInterface, QueryRunner } from 'typeorm';

const SCHEMA = 'pgboss';

/**
 * The tables of pg-boss, as the library in use makes them; later versions of it bring their own up to date. Here
 * rather than at its first start: the lock of our migrations covers replicas that start together.
 */
export class InstallJobQueue1763900000000 implements MigrationInterface {
  /** The library's statements bring a transaction of their own. */
  readonly transaction = false;

  async up(queryRunner: QueryRunner): Promise<void> {
    const [installed] = await queryRunner.manager.query<{ version: string | null }[]>(
      'SELECT to_regclass($1) AS version',
      [`${SCHEMA}.version`],
    );
    if (installed?.version) {
      return;
    }
    // Only where there is something to install: the library takes long to load.
    const { getConstructionPlans } = await import('pg-boss');
    await queryRunner.query(getConstructionPlans(SCHEMA));
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP SCHEMA ${SCHEMA} CASCADE`);
  }
}
