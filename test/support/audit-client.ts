import type { AuditEntryDto, AuditPageDto } from '../../src/audit/api/audit.controller.js';
import type { TestApp, TestUser } from './create-test-app.js';

/** Reads the audit as the administrator, and takes its table away for a while. */
export class AuditClient {
  constructor(private readonly app: TestApp) {}

  /** The first page. */
  async find(filter: Record<string, string>): Promise<AuditEntryDto[]> {
    return (await this.page(filter)).items;
  }

  async page(filter: Record<string, string>): Promise<AuditPageDto> {
    const { status, body } = await this.get(filter, this.app.admin);
    if (status !== 200) {
      throw new Error(`${status} ${JSON.stringify(body)}`);
    }
    return body as AuditPageDto;
  }

  async get(filter: Record<string, string>, who: TestUser): Promise<{ status: number; body: unknown }> {
    const query = new URLSearchParams(filter).toString();
    const response = await fetch(`${this.app.url}/api/v1/audit?${query}`, { headers: who.headers });
    return { status: response.status, body: await response.json() };
  }

  /** Runs `work` while no entry can be stored. */
  async whileFull<T>(work: () => Promise<T>): Promise<T> {
    const { dataSource } = this.app;
    await dataSource.query(
      'ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_full CHECK (false) NOT VALID',
    );
    try {
      return await work();
    } finally {
      await dataSource.query('ALTER TABLE audit_entries DROP CONSTRAINT audit_entries_full');
    }
  }
}
