import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { NamedStatement } from '../../../database/named-statement.js';
import type { SandboxRowStatus } from '../../sandboxes/sandbox-status.js';
import type { SandboxSight } from './sandbox-standing.js';

const FIND = 'SELECT status, status_detail FROM sandboxes WHERE id = $1';

/** Looks at the sandboxes of starts. */
@Injectable()
export class StartSandboxReader {
  private readonly statement = new NamedStatement<{ status: SandboxRowStatus; status_detail: string | null }>(
    'start_sandbox',
    FIND,
  );

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async find(sandboxId: string): Promise<SandboxSight> {
    const [row] = await this.statement.run(this.dataSource, [sandboxId]);
    return { status: row?.status ?? null, statusDetail: row?.status_detail ?? null };
  }
}
