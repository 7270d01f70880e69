import type { Db } from 'pg-boss';
import type { EntityManager } from 'typeorm';

/** Lets pg-boss write inside a transaction of ours. */
export function transactionDatabase(manager: EntityManager): Db {
  return {
    executeSql: async (text, values) => {
      if (!manager.queryRunner?.isTransactionActive) {
        throw new Error('a job is sent inside of a transaction');
      }
      const { records } = await manager.queryRunner.query(text, values, true);
      return { rows: records };
    },
  };
}
