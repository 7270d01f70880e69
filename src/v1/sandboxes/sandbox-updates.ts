import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import { EntityRows } from '../../database/entity-rows.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { LeaseClaim } from './sandbox-leases.js';
import type { SandboxRowStatus } from './sandbox-status.js';
import { Sandbox } from './sandbox.entity.js';

type Columns = Partial<Omit<Sandbox, 'user'>>;

export interface SandboxUpdate {
  id: string;
  /** The row has one of these. */
  from: readonly SandboxRowStatus[];
  /** And these values. */
  where: Columns;
  set: Columns;
  /** The lease is taken too, if it is free; null: it is left alone. */
  claim: LeaseClaim | null;
}

/** Conditional updates of rows, as named statements: there are as many texts as there are kinds of callers. */
@Injectable()
export class SandboxUpdates {
  private readonly rows: EntityRows<Sandbox>;
  private readonly statements = new Map<string, NamedStatement<Record<string, unknown>>>();

  constructor(@InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>) {
    this.rows = new EntityRows(sandboxes, 'sandboxes');
  }

  /**
   * @param manager the transaction that it is part of; null: none
   * @returns the row as it is now; null when there is none like that
   */
  async run(update: SandboxUpdate, manager: EntityManager | null): Promise<Sandbox | null> {
    const { id, from, where, set, claim } = update;
    const values: unknown[] = [];
    const param = (value: unknown): string => `$${values.push(value)}`;
    const equals = ([property, value]: [string, unknown]): string => {
      if (value === undefined) {
        throw new Error(`an update of a sandbox without a value for ${property}`);
      }
      return `${this.rows.column(property)} = ${param(value)}`;
    };
    const assignments = [...Object.entries(set).map(equals), ...(claim?.assignments(param) ?? [])];
    const conditions = [
      `status = ANY(${param([...from])}::text[])`,
      ...Object.entries({ id, ...where }).map(equals),
    ];
    const statement = this.statement(
      `UPDATE sandboxes SET ${assignments.join(', ')} WHERE ${conditions.join(' AND ')} RETURNING ${this.rows.columns}`,
    );
    const [row] = manager
      ? await statement.within(manager, values)
      : await statement.run(this.sandboxes.manager.connection, values);
    return row ? this.rows.entity(row) : null;
  }

  private statement(text: string): NamedStatement<Record<string, unknown>> {
    let statement = this.statements.get(text);
    if (!statement) {
      statement = new NamedStatement(`sandboxes_update_${this.statements.size + 1}`, text);
      this.statements.set(text, statement);
    }
    return statement;
  }
}
