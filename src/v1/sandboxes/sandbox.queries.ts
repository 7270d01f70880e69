import { timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { decodePageId, type Page, toPage } from '../../common/pagination/page.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { AgentServerTarget } from '../agent-servers/agent-server.http.js';
import { currentPorts, type PortAddresses, type SandboxRowStatus } from './sandbox.entity.js';
import { isSandboxId, sessionKeyBinding, sessionKeyHash } from './session-key.js';

const FIND_TARGET = `
  SELECT id, user_id, address, port_addresses, session_key, generation, spec_id, status
  FROM sandboxes
  WHERE id = $1 AND address IS NOT NULL`;

interface TargetRow {
  id: string;
  user_id: string;
  address: string;
  port_addresses: PortAddresses | null;
  session_key: string;
  generation: number;
  spec_id: string;
  status: SandboxRowStatus;
}

/** A sandbox with an agent server that can be talked to. */
export interface RunningSandbox extends AgentServerTarget {
  sandboxId: string;
  userId: string;
  /** Where the ports of what agents start are reached, by name. */
  ports: Readonly<Record<string, string>>;
  /** Counts starts: what an agent server was told before another generation is lost. */
  generation: number;
  specId: string;
  status: SandboxRowStatus;
}

/** Where agent servers are right now. */
@Injectable()
export class RunningSandboxes {
  private readonly findTarget = new NamedStatement<TargetRow>('sandbox_target', FIND_TARGET);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly cipher: SecretCipher,
  ) {}

  /** The sandbox, or null unless it is RUNNING. */
  async target(sandboxId: string): Promise<RunningSandbox | null> {
    const found = await this.lastTarget(sandboxId);
    return found?.status === 'RUNNING' ? found : null;
  }

  /**
   * Like `target`, and also a sandbox that is about to be stopped or removed, whose agent server still answers while
   * `SandboxEvents.beforePause` runs. For reading what would else be lost; users' requests go to `target`.
   */
  async lastTarget(sandboxId: string): Promise<RunningSandbox | null> {
    if (!isSandboxId(sandboxId)) {
      return null;
    }
    const [row] = await this.findTarget.run(this.dataSource, [sandboxId]);
    return row
      ? {
          sandboxId: row.id,
          userId: row.user_id,
          address: row.address,
          ports: currentPorts(row.port_addresses, row.generation),
          sessionKey: this.cipher.decrypt(row.session_key, sessionKeyBinding(row.id)),
          generation: row.generation,
          specId: row.spec_id,
          status: row.status,
        }
      : null;
  }
}

/** Whose a sandbox key is. */
export interface SandboxKeyHolder {
  sandboxId: string;
  /** The user whom the sandbox belongs to. */
  userId: string;
  /** Whether the sandbox was RUNNING when last observed; its key opens nothing otherwise. */
  running: boolean;
}

/** Knows sandboxes by the key that their agent servers, and what runs beside these, present. */
export abstract class SandboxKeys {
  /** The sandbox that a presented key belongs to; null for a key of none. */
  abstract find(sessionKey: string): Promise<SandboxKeyHolder | null>;
}

/** What a sandbox's owner may know of it. */
export interface SandboxView {
  id: string;
  userId: string;
  specId: string;
  status: SandboxRowStatus;
  statusDetail: string | null;
  /** Null unless it is RUNNING, like the key. */
  address: string | null;
  /** Where the ports of what agents start are reached, by name. */
  ports: Readonly<Record<string, string>>;
  sessionKey: string | null;
  createdAt: Date;
}

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
export class SandboxQueries {
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

const FIND_BY_KEY = `
  SELECT id, user_id, status, session_key_hash
  FROM sandboxes
  WHERE session_key_hash = $1 AND status <> 'DELETING'`;

interface KeyRow {
  id: string;
  user_id: string;
  status: SandboxRowStatus;
  session_key_hash: Buffer;
}

/** Finds sandboxes by the hash of their keys. */
@Injectable()
export class StoredSandboxKeys extends SandboxKeys {
  private readonly findByKey = new NamedStatement<KeyRow>('sandbox_by_key', FIND_BY_KEY);

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    super();
  }

  override async find(sessionKey: string): Promise<SandboxKeyHolder | null> {
    const hash = sessionKeyHash(sessionKey);
    const [row] = await this.findByKey.run(this.dataSource, [hash]);
    return row && timingSafeEqual(row.session_key_hash, hash)
      ? { sandboxId: row.id, userId: row.user_id, running: row.status === 'RUNNING' }
      : null;
  }
}
