import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { decodePageId, type Page, toPage } from '../../common/pagination/page.js';
import { NamedStatement } from '../../database/named-statement.js';
import { currentPorts, type PortAddresses } from './port-addresses.js';
import { isSandboxId, sessionKeyBinding } from './sandbox-session-key.js';
import type { SandboxRowStatus } from './sandbox-status.js';
import type { SandboxView } from './sandbox-view.js';

/** Microseconds in the cursor: rows of one millisecond exist, and none may be left out or come twice. */
const COLUMNS = `
  id, user_id, spec_id, status, status_detail, address, port_addresses, generation, created_at,
  CASE WHEN status = 'RUNNING' THEN session_key END AS session_key,
  to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_exactly`;

const SEARCH = `
  SELECT ${COLUMNS}
  FROM sandboxes
  WHERE user_id = $1 AND status <> 'DELETING'
    AND (created_at, id) < ($2::timestamptz, $3)
  ORDER BY created_at DESC, id DESC
  LIMIT $4`;

const LOOK_UP = `
  SELECT ${COLUMNS} FROM sandboxes WHERE user_id = $1 AND id = ANY($2) AND status <> 'DELETING'`;

const CURSOR = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) ([0-9A-Za-z]{1,64})$/;

interface SandboxRow {
  id: string;
  user_id: string;
  spec_id: string;
  status: SandboxRowStatus;
  status_detail: string | null;
  address: string | null;
  port_addresses: PortAddresses | null;
  generation: number;
  session_key: string | null;
  created_at: Date;
  created_exactly: string;
}

/** Reads sandboxes for their owners: one statement, and no question to any backend. */
@Injectable()
export class SandboxesReader {
  private readonly searchRows = new NamedStatement<SandboxRow>('sandboxes_search', SEARCH);
  private readonly lookUpRows = new NamedStatement<SandboxRow>('sandboxes_look_up', LOOK_UP);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly cipher: SecretCipher,
  ) {}

  /** The user's sandboxes, newest first. */
  async search(userId: string, limit: number, pageId: string | undefined): Promise<Page<SandboxView>> {
    // Before the first page there is a place too, so that one plan suits all pages.
    const [, createdAt = 'infinity', id = ''] = CURSOR.exec(decodePageId(pageId) ?? '') ?? [];
    const rows = await this.searchRows.run(this.dataSource, [userId, createdAt, id, limit + 1]);
    const page = toPage(rows, limit, (row) => `${row.created_exactly} ${row.id}`);
    return { items: page.items.map((row) => this.view(row)), nextPageId: page.nextPageId };
  }

  /** In the order of the ids; null for each that is unknown, or another user's. */
  async batch(userId: string, ids: readonly string[]): Promise<(SandboxView | null)[]> {
    const rows = await this.lookUpRows.run(this.dataSource, [userId, ids.filter(isSandboxId)]);
    const views = new Map(rows.map((row) => [row.id, this.view(row)]));
    return ids.map((id) => views.get(id) ?? null);
  }

  async find(userId: string, id: string): Promise<SandboxView | null> {
    const [view = null] = await this.batch(userId, [id]);
    return view;
  }

  private view(row: SandboxRow): SandboxView {
    const runs = row.status === 'RUNNING';
    return {
      id: row.id,
      userId: row.user_id,
      specId: row.spec_id,
      status: row.status,
      statusDetail: row.status_detail,
      address: runs ? row.address : null,
      ports: runs ? currentPorts(row.port_addresses, row.generation) : {},
      sessionKey:
        row.session_key === null ? null : this.cipher.decrypt(row.session_key, sessionKeyBinding(row.id)),
      createdAt: row.created_at,
    };
  }
}
