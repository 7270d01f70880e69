import { Injectable } from '@nestjs/common';
import { InjectDataSource, InjectRepository } from '@nestjs/typeorm';
import { DataSource, type EntityManager, In, Not, Repository } from 'typeorm';
import type { QueryDeepPartialEntity } from 'typeorm/query-builder/QueryPartialEntity.js';
import type { EncryptedColumn, SecretCipher } from '../../common/crypto/secret-cipher.js';
import {
  decodePageId,
  formatTimeCursor,
  type Page,
  parseTimeCursor,
  toPage,
} from '../../common/pagination/page.js';
import { NamedStatement } from '../../database/named-statement.js';
import { DatabaseNotifications } from '../../database/notifications/database-notifications.js';
import type { SandboxRowStatus } from '../sandboxes/sandbox.entity.js';
import { hostIsSilent } from '../sandboxes/sandbox.repository.js';
import { type StartRequest, StartTask, type StartTaskStatus } from './start-task.entity.js';
import { StartSuperseded } from './start/start-errors.js';

/** A start task with what is known of its sandbox. */
export interface StartTaskRow {
  id: string;
  user_id: string;
  status: StartTaskStatus;
  detail: string | null;
  app_conversation_id: string;
  sandbox_id: string;
  /** Secrets in it are masked. */
  request: StartRequest;
  notes: string[];
  created_at: Date;
  updated_at: Date;
  sandbox_status: SandboxRowStatus | null;
  address: string | null;
  /** The moment it is ordered by, with microseconds. */
  cursor_at: string;
}

export const START_TASK_ORDERS = ['CREATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT', 'UPDATED_AT_DESC'] as const;
export type StartTaskOrder = (typeof START_TASK_ORDERS)[number];

/** Which start tasks are wanted; what is left out does not matter. */
export interface StartTaskFilter {
  /** UUID with dashes. */
  conversationId?: string;
  createdFrom?: Date;
}

const COLUMNS = `
  t.id, t.user_id, t.status, t.detail, t.app_conversation_id, t.sandbox_id, t.request, t.notes, t.created_at,
  t.updated_at, s.status AS sandbox_status, s.address`;

const TABLES = `
  app_conversation_start_tasks t LEFT JOIN sandboxes s ON s.id = t.sandbox_id AND s.user_id = t.user_id`;

const FILTER = `
  t.user_id = $1
  AND ($2::uuid IS NULL OR t.app_conversation_id = $2)
  AND ($3::timestamptz IS NULL OR t.created_at >= $3)`;

/** Like the searches not named: a plan for whichever filters there may be reads all rows of the user. */
const COUNT = `SELECT count(*)::int AS count FROM app_conversation_start_tasks t WHERE ${FILTER}`;

const FIND = new NamedStatement<StartTaskRow>(
  'start_tasks_find',
  `SELECT ${COLUMNS}, '' AS cursor_at FROM ${TABLES} WHERE t.user_id = $1 AND t.id = ANY ($2::uuid[])`,
);

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const SEARCHES = {
  CREATED_AT: searchBy('created_at', 'asc'),
  CREATED_AT_DESC: searchBy('created_at', 'desc'),
  UPDATED_AT: searchBy('updated_at', 'asc'),
  UPDATED_AT_DESC: searchBy('updated_at', 'desc'),
} satisfies Record<StartTaskOrder, string>;

/** Reads start tasks of one user, each list with one statement. */
@Injectable()
export class StartTaskQueries {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** A page id that is none of ours means the first page. */
  async search(
    userId: string,
    filter: StartTaskFilter,
    { order, limit, pageId }: { order: StartTaskOrder; limit: number; pageId?: string },
  ): Promise<Page<StartTaskRow>> {
    const beginning = order.endsWith('_DESC')
      ? { at: 'infinity', id: LAST_ID }
      : { at: '-infinity', id: FIRST_ID };
    const after = parseTimeCursor(decodePageId(pageId)) ?? beginning;
    const rows = await this.dataSource.query<StartTaskRow[]>(SEARCHES[order], [
      userId,
      ...filterValues(filter),
      after.at,
      after.id,
      limit + 1,
    ]);
    return toPage(rows, limit, (row) => formatTimeCursor({ at: row.cursor_at, id: row.id }));
  }

  async count(userId: string, filter: StartTaskFilter): Promise<number> {
    const [row] = await this.dataSource.query<{ count: number }[]>(COUNT, [userId, ...filterValues(filter)]);
    return row?.count ?? 0;
  }

  /** By id; unknown ones and those of other users are not in it. */
  async findAll(userId: string, ids: readonly string[]): Promise<Map<string, StartTaskRow>> {
    const rows = ids.length === 0 ? [] : await FIND.run(this.dataSource, [userId, ids]);
    return new Map(rows.map((row) => [row.id, row]));
  }
}

function searchBy(column: 'created_at' | 'updated_at', direction: 'asc' | 'desc'): string {
  const beyond = direction === 'desc' ? '<' : '>';
  return `
    SELECT ${COLUMNS}, to_char(t.${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS cursor_at
    FROM ${TABLES}
    WHERE ${FILTER} AND (t.${column}, t.id) ${beyond} ($4::timestamptz, $5::uuid)
    ORDER BY t.${column} ${direction}, t.id ${direction} LIMIT $6`;
}

function filterValues({ conversationId, createdFrom }: StartTaskFilter): unknown[] {
  return [conversationId ?? null, createdFrom ?? null];
}

/** As answers show a secret. */
const MASK = '**********';

/** Where start tasks keep encrypted records. */
export const START_TASK_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  {
    table: 'app_conversation_start_tasks',
    column: 'request_secrets',
    keyColumns: ['id'],
    binding: ({ id = '' }) => requestSecretsBinding(id),
  },
];

/** A request as its row keeps it, and what the row keeps encrypted beside it. */
export function splitSecrets(
  request: StartRequest,
  taskId: string,
  cipher: SecretCipher,
): { request: StartRequest; requestSecrets: string | null } {
  const { secrets } = request;
  if (secrets === null || Object.keys(secrets).length === 0) {
    return { request, requestSecrets: null };
  }
  return {
    request: { ...request, secrets: Object.fromEntries(Object.keys(secrets).map((name) => [name, MASK])) },
    requestSecrets: cipher.encrypt(JSON.stringify(secrets), requestSecretsBinding(taskId)),
  };
}

/**
 * The secrets that came with the request of a start, by name.
 *
 * @throws SecretDecryptionError when they are not readable with the configured keys
 */
export function requestSecrets(
  { id, requestSecrets: stored }: Pick<StartTask, 'id' | 'requestSecrets'>,
  cipher: SecretCipher,
): Map<string, string> {
  if (stored === null) {
    return new Map();
  }
  const secrets: Record<string, string> = JSON.parse(cipher.decrypt(stored, requestSecretsBinding(id)));
  return new Map(Object.entries(secrets));
}

function requestSecretsBinding(taskId: string): string {
  return `app_conversation_start_tasks.request_secrets:${taskId}`;
}

/** Channel of the notifications about start tasks; the payload is the task's id. */
export const START_TASKS_CHANNEL = 'start_tasks';

/** What a worker may set beside the status. */
type StartTaskChange = Partial<Pick<StartTask, 'detail' | 'notes' | 'sandboxMade' | 'workingDir'>>;

/** Of tasks that are looked through in turns. */
const MOST_AT_ONCE = 50;

const OVER = ['READY', 'ERROR'] as const satisfies readonly StartTaskStatus[];

/**
 * Rows of start tasks. A worker changes one only while it is the last that took it up and the status is the one it
 * knows: one that was given up for dead, or whose task was deleted, is told so by `StartSuperseded`.
 */
@Injectable()
export class StartTaskRepository {
  constructor(
    @InjectRepository(StartTask) private readonly tasks: Repository<StartTask>,
    private readonly notifications: DatabaseNotifications,
  ) {}

  /** Takes a task away from whoever had it; null when it is over or gone. */
  async takeUp(id: string): Promise<StartTask | null> {
    const { affected } = await this.tasks.update(
      { id, status: Not(In([...OVER])) },
      { attempt: () => 'attempt + 1' },
    );
    return affected === 1 ? this.tasks.findOneBy({ id }) : null;
  }

  /**
   * Tasks of other hosts that are not over, that nothing happened to for so long, and whose hosts have said nothing for
   * as long; those longest unchanged first.
   *
   * @param seconds how long, by the database's clock
   */
  async withoutHost(hostId: string, seconds: number): Promise<StartTask[]> {
    return this.tasks
      .createQueryBuilder('task')
      .where({ hostId: Not(hostId), status: Not(In([...OVER])) })
      .andWhere('task.updated_at < now() - make_interval(secs => :seconds)', { seconds })
      .andWhere(hostIsSilent('task.host_id'))
      .orderBy('task.updated_at')
      .take(MOST_AT_ONCE)
      .getMany();
  }

  /**
   * Lets a task go on to the next status, without a detail unless one is given.
   *
   * @throws StartSuperseded
   */
  async advance(
    task: StartTask,
    status: StartTaskStatus,
    change: StartTaskChange = {},
    manager: EntityManager = this.tasks.manager,
  ): Promise<StartTask> {
    return this.update(manager, task, { detail: null, ...change, status });
  }

  /**
   * Changes a task within its status; nothing happens where it is like that already.
   *
   * @throws StartSuperseded
   */
  async note(
    task: StartTask,
    change: StartTaskChange,
    manager: EntityManager = this.tasks.manager,
  ): Promise<StartTask> {
    const isSame = Object.entries(change).every(
      ([member, value]) => JSON.stringify(task[member as keyof StartTaskChange]) === JSON.stringify(value),
    );
    return isSame ? task : this.update(manager, task, change);
  }

  /**
   * Like `note`, and holds the row until the caller's transaction ends, also where nothing changes.
   *
   * @throws StartSuperseded
   */
  async lock(task: StartTask, change: StartTaskChange, manager: EntityManager): Promise<StartTask> {
    return this.update(manager, task, change);
  }

  /** Runs changes of several tables as one. */
  async transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.tasks.manager.transaction(work);
  }

  private async update(
    manager: EntityManager,
    task: StartTask,
    change: StartTaskChange & { status?: StartTaskStatus },
  ): Promise<StartTask> {
    const { id, status, attempt } = task;
    const values: QueryDeepPartialEntity<StartTask> = change;
    const { affected } = await manager.getRepository(StartTask).update({ id, status, attempt }, values);
    if (affected !== 1) {
      throw new StartSuperseded();
    }
    await this.notifications.publish(manager, START_TASKS_CHANNEL, id);
    return Object.assign({}, task, change);
  }
}

/** A task as it begins; the rest follows. */
type NewStartTask = Omit<StartTask, 'user' | 'detail' | 'attempt' | 'createdAt' | 'updatedAt'>;

const INSERT = new NamedStatement<{ created_at: Date; updated_at: Date }>(
  'start_task_insert',
  `INSERT INTO app_conversation_start_tasks
    (id, user_id, status, app_conversation_id, sandbox_id, host_id, request, request_secrets, notes, sandbox_made,
     working_dir)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
  RETURNING created_at, updated_at`,
);

/** Stores a new task in the caller's transaction. */
export async function insertStartTask(manager: EntityManager, task: NewStartTask): Promise<StartTask> {
  const [row] = await INSERT.within(manager, [
    task.id,
    task.userId,
    task.status,
    task.appConversationId,
    task.sandboxId,
    task.hostId,
    JSON.stringify(task.request),
    task.requestSecrets,
    task.notes,
    task.sandboxMade,
    task.workingDir,
  ]);
  if (!row) {
    throw new Error('a start task was not stored');
  }
  return { ...task, detail: null, attempt: 0, createdAt: row.created_at, updatedAt: row.updated_at };
}
