import type { DataSource } from 'typeorm';

/**
 * What would have to be done to the database for it to fit the entities of the data source; nothing when the
 * migrations and the entities say the same.
 *
 * @returns SQL statements, none of which is run
 */
export async function pendingSchemaChanges(dataSource: DataSource): Promise<string[]> {
  const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
  return upQueries.map(({ query }) => query);
}
