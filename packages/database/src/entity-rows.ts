import type { ObjectLiteral, Repository } from 'typeorm';

/** Lets raw SQL name an entity's columns and turn its rows into entities. */
export class EntityRows<Entity extends ObjectLiteral> {
  readonly columns: string;

  constructor(
    private readonly repository: Repository<Entity>,
    table: string,
  ) {
    const names = repository.metadata.columns.map(({ databaseName }) => `${table}.${databaseName}`);
    this.columns = names.join(', ');
  }

  /** @throws Error for a property without a column */
  column(property: string): string {
    const column = this.repository.metadata.findColumnWithPropertyName(property);
    if (!column) {
      throw new Error(`${this.repository.metadata.name} has no column for ${property}`);
    }
    return column.databaseName;
  }

  entity(row: Readonly<Record<string, unknown>>): Entity {
    const { metadata, manager } = this.repository;
    const entity = this.repository.create();
    for (const column of metadata.columns) {
      const value: unknown = manager.connection.driver.prepareHydratedValue(row[column.databaseName], column);
      column.setEntityValue(entity, value);
    }
    return entity;
  }
}
