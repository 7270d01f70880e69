import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager, In, Not } from 'typeorm';
import { mayAct } from '../../auth/user.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import {
  formatTimeCursor,
  type Page,
  parsePageId,
  parseTimeCursor,
  toPage,
} from '@slipway/api/pagination/page.js';
import { NamedStatement } from '@slipway/database/named-statement.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import { isShownRunning, type SandboxRowStatus, toWireStatus } from './sandbox-status.js';
import { currentPorts, type PortAddresses, Sandbox } from './sandbox.entity.js';
import { isSandboxId, sessionKeyBinding, sessionKeyHash } from './session-key.js';

export interface SandboxView {
  id: string;
  userId: string;
  specId: string;
  status: SandboxRowStatus;
  statusDetail: string | null;
  address: string | null;
  exposePort: number | null;
  /** Addresses by name; empty unless it is RUNNING. */
  ports: Readonly<Record<string, string>>;
  sessionKey: string | null;
  createdAt: Date;
}

export interface SandboxSnapshot {
  status: SandboxRowStatus | null;
  statusDetail: string | null;
}

export interface SandboxCount {
  status: SandboxRowStatus;
  backend: string;
  count: number;
}

/** The cursor has microseconds: several rows of one millisecond exist, and none may be left out or come twice. */
const COLUMNS = `
  id, user_id AS "userId", spec_id AS "specId", status, status_detail AS "statusDetail", address, expose_port AS "exposePort",
  port_addresses AS "portAddresses", generation, created_at AS "createdAt",
  CASE WHEN ${isShownRunning('found')} THEN session_key END AS "sessionKey",
  to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdExactly"`;

const SEARCH = `
  SELECT ${COLUMNS}
  FROM sandboxes found
  WHERE user_id = $1 AND status <> 'DELETING'
    AND (created_at, id) < ($2::timestamptz, $3)
  ORDER BY created_at DESC, id DESC
  LIMIT $4`;

const SEARCH_ALL = `
  SELECT ${COLUMNS}
  FROM sandboxes found
  WHERE status <> 'DELETING' AND (created_at, id) < ($1::timestamptz, $2)
  ORDER BY created_at DESC, id DESC
  LIMIT $3`;

/** Looks up by id before anything else: a plan for the average user would read all sandboxes of one who has many. */
const LOOK_UP = `
  WITH found AS MATERIALIZED (SELECT * FROM sandboxes WHERE id = ANY($2) AND status <> 'DELETING')
  SELECT ${COLUMNS} FROM found WHERE user_id = $1`;

const COUNTS = 'SELECT status, backend, count(*)::int AS count FROM sandboxes GROUP BY status, backend';
/** Counting reads a whole index: from so many sandboxes on, the last count is shown for a while. */
const MANY = 10_000;
const COUNT_MANY_EVERY_MS = 60_000;

const ACTIVE: SandboxRowStatus[] = ['STARTING', 'RUNNING'];

const COUNT_ACTIVE = `
  SELECT count(*)::int AS count FROM sandboxes
  WHERE user_id = $1 AND status IN ('STARTING', 'RUNNING') AND id <> $2`;

/** Stops reading at the bound. */
const HAS_AS_MANY = `
  SELECT count(*) = $2 AS "hasAsMany"
  FROM (SELECT FROM sandboxes WHERE user_id = $1 AND status <> 'DELETING' LIMIT $2) AS found`;

/** Unique among our advisory locks. */
const FIRST_USER_LOCK = 7_305_218_441;

/** Two ends of an index: `<>` would read all sandboxes of the user. */
const EXISTS_OF_OTHERS = `
  SELECT EXISTS (SELECT FROM sandboxes WHERE user_id < $1) OR EXISTS (SELECT FROM sandboxes WHERE user_id > $1) AS found`;

/** The key is encrypted. */
interface SandboxRow extends Omit<SandboxView, 'ports'> {
  portAddresses: PortAddresses | null;
  generation: number;
  createdExactly: string;
}

/** Reads and counts sandboxes: one statement each, and no call to any backend. */
@Injectable()
export class SandboxQueries {
  private readonly searchRows = new NamedStatement<SandboxRow>('sandboxes_search', SEARCH);
  private readonly lookUpRows = new NamedStatement<SandboxRow>('sandboxes_look_up', LOOK_UP);
  private readonly countRows = new NamedStatement<{ count: number }>('sandboxes_count_active', COUNT_ACTIVE);
  private readonly asManyRows = new NamedStatement<{ hasAsMany: boolean }>(
    'sandboxes_has_as_many',
    HAS_AS_MANY,
  );
  private counted: SandboxCount[] = [];
  private countedUntil = 0;

  constructor(
    private readonly dataSource: DataSource,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
  ) {}

  async search(userId: string, limit: number, pageId: string | undefined): Promise<Page<SandboxView>> {
    return this.page('sandboxes', limit, pageId, (bounds) =>
      this.searchRows.run(this.dataSource, [userId, ...bounds]),
    );
  }

  async searchAll(limit: number, pageId: string | undefined): Promise<Page<SandboxView>> {
    return this.page('all_sandboxes', limit, pageId, (bounds) =>
      this.dataSource.query<SandboxRow[]>(SEARCH_ALL, bounds),
    );
  }

  /** Returns sandboxes in the order of the ids; null for each that is unknown, or another user's. */
  async batch(userId: string, ids: readonly string[]): Promise<(SandboxView | null)[]> {
    const rows = await this.lookUpRows.run(this.dataSource, [userId, ids.filter(isSandboxId)]);
    const views = new Map(rows.map((row) => [row.id, this.view(row)]));
    return ids.map((id) => views.get(id) ?? null);
  }

  async find(userId: string, id: string): Promise<SandboxView | null> {
    const [view = null] = await this.batch(userId, [id]);
    return view;
  }

  async snapshot(id: string): Promise<SandboxSnapshot> {
    const found = await this.dataSource
      .getRepository(Sandbox)
      .findOne({ select: { id: true, status: true, statusDetail: true }, where: { id } });
    return { status: found?.status ?? null, statusDetail: found?.statusDetail ?? null };
  }

  /** Counts sandboxes that start or run, apart from `exceptId`. */
  async countActive(manager: EntityManager | null, userId: string, exceptId: string | null): Promise<number> {
    const values = [userId, exceptId ?? ''];
    const [row] = manager
      ? await this.countRows.within(manager, values)
      : await this.countRows.run(this.dataSource, values);
    return row?.count ?? 0;
  }

  /** Whether a user has at least this many sandboxes, not counting those that are being removed. */
  async hasAsMany(manager: EntityManager, userId: string, count: number): Promise<boolean> {
    const [row] = await this.asManyRows.within(manager, [userId, count]);
    return row?.hasAsMany === true;
  }

  async findActive(
    manager: EntityManager | null,
    userId: string,
    exceptId: string | null,
  ): Promise<Sandbox[]> {
    const sandboxes = (manager ?? this.dataSource).getRepository(Sandbox);
    return sandboxes.findBy({ userId, status: In(ACTIVE), ...(exceptId !== null && { id: Not(exceptId) }) });
  }

  /** Whether another user has a sandbox. Its lock until the transaction ends makes two first users see each other. */
  async othersHaveSandboxes(manager: EntityManager, userId: string): Promise<boolean> {
    await manager.query('SELECT pg_advisory_xact_lock($1)', [FIRST_USER_LOCK]);
    const [row] = await manager.query<{ found: boolean }[]>(EXISTS_OF_OTHERS, [userId]);
    return row?.found === true;
  }

  /** Counts sandboxes of all users and hosts; up to a minute old if there are many. Statuses without sandboxes are left out. */
  async counts(): Promise<SandboxCount[]> {
    if (this.clock.now() >= this.countedUntil) {
      this.counted = await this.dataSource.query<SandboxCount[]>(COUNTS);
      const total = this.counted.reduce((sum, { count }) => sum + count, 0);
      this.countedUntil = total > MANY ? this.clock.now() + COUNT_MANY_EVERY_MS : 0;
    }
    return this.counted;
  }

  private async page(
    list: string,
    limit: number,
    pageId: string | undefined,
    read: (bounds: unknown[]) => Promise<SandboxRow[]>,
  ): Promise<Page<SandboxView>> {
    // The first page has a cursor too, so that one plan suits all pages.
    const start = parsePageId(list, pageId, (text) => parseTimeCursor(text, isSandboxId));
    const rows = await read([start?.at ?? 'infinity', start?.id ?? '', limit + 1]);
    const { items, nextPageId } = toPage(list, rows, limit, (row) =>
      formatTimeCursor({ at: row.createdExactly, id: row.id }),
    );
    return { items: items.map((row) => this.view(row)), nextPageId };
  }

  private view({ portAddresses, generation, createdExactly: _cursor, ...row }: SandboxRow): SandboxView {
    const { id, address, sessionKey } = row;
    const isRunning = toWireStatus(row.status, address) === 'RUNNING';
    return {
      ...row,
      address: isRunning ? address : null,
      ports: isRunning ? currentPorts(portAddresses, generation) : {},
      sessionKey: sessionKey === null ? null : this.cipher.decrypt(sessionKey, sessionKeyBinding(id)),
    };
  }
}

const FIND_TARGET = `
  SELECT id AS "sandboxId", user_id AS "userId", address, port_addresses AS "portAddresses", session_key AS "encryptedKey",
    generation, stopped_generation AS "stoppedGeneration", spec_id AS "specId", status,
    overrides ->> 'image' IS NOT NULL AS "hasOwnImage", ${mayAct('user_id')} AS "mayOwnerAct",
    coalesce(egress_mode IN ('credentials', 'both'), false) AS "hasCredentialsOutside",
    egress_setup IS NOT NULL AS "isInSetup"
  FROM sandboxes
  WHERE id = $1 AND address IS NOT NULL`;

const IS_CURRENT = `
  SELECT 1 AS found
  FROM sandboxes
  WHERE id = $1 AND generation = $2 AND address = $3 AND session_key_hash = $4
    AND status IN ('RUNNING', 'PAUSING', 'DELETING')`;

export interface RunningSandbox extends AgentServerTarget {
  sandboxId: string;
  userId: string;
  ports: Readonly<Record<string, string>>;
  /** Counts starts: what an agent server was told in an earlier generation is lost. */
  generation: number;
  /** The user stopped it before this start, so what ran then goes on only when the user says so. */
  stoppedByUser: boolean;
  specId: string;
  status: SandboxRowStatus;
  /** The user chose the image, so what runs there is the user's. */
  hasOwnImage: boolean;
  /** The user is not disabled, so the sandbox's key is accepted. */
  mayOwnerAct: boolean;
  /** A proxy puts credentials in, so it is given placeholders. */
  hasCredentialsOutside: boolean;
  /** The rules of its setup hold, or have not ended everywhere. */
  isInSetup: boolean;
}

interface TargetRow extends Pick<
  RunningSandbox,
  | 'sandboxId'
  | 'userId'
  | 'address'
  | 'generation'
  | 'specId'
  | 'status'
  | 'hasOwnImage'
  | 'mayOwnerAct'
  | 'hasCredentialsOutside'
  | 'isInSetup'
> {
  portAddresses: PortAddresses | null;
  encryptedKey: string;
  stoppedGeneration: number | null;
}

@Injectable()
export class RunningSandboxQueries {
  constructor(
    private readonly dataSource: DataSource,
    private readonly cipher: SecretCipher,
  ) {}

  /** Returns null unless the sandbox is RUNNING. */
  async target(sandboxId: string): Promise<RunningSandbox | null> {
    const found = await this.lastTarget(sandboxId);
    return found?.status === 'RUNNING' ? found : null;
  }

  /** Like `target`, also during a stop or removal. For listeners of `stopping`, not for requests. */
  async lastTarget(sandboxId: string): Promise<RunningSandbox | null> {
    if (!isSandboxId(sandboxId)) {
      return null;
    }
    const [row] = await this.dataSource.query<TargetRow[]>(FIND_TARGET, [sandboxId]);
    if (!row) {
      return null;
    }
    const { portAddresses, encryptedKey, stoppedGeneration, ...found } = row;
    const { address, generation } = found;
    const sessionKey = this.cipher.decrypt(encryptedKey, sessionKeyBinding(sandboxId));
    return {
      ...found,
      ports: currentPorts(portAddresses, generation),
      sessionKey,
      stoppedByUser: stoppedGeneration === generation - 1,
      isCurrent: async () => {
        const values = [sandboxId, generation, address, sessionKeyHash(sessionKey)];
        return (await this.dataSource.query<unknown[]>(IS_CURRENT, values)).length > 0;
      },
    };
  }
}

/** SQL that joins, as `s`, the sandbox of a row (`sandbox_id`, `user_id`), if it is the same user's. */
export function joinSandbox(row: string): string {
  return `LEFT JOIN sandboxes s ON s.id = ${row}.sandbox_id AND s.user_id = ${row}.user_id`;
}
