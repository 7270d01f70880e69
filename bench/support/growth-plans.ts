import { open, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';

/** PostgreSQL writes the plan of a statement before its result, another process of it may be a moment later. */
const SETTLE_MS = 300;
/** A plan that stops at the first row of a table does not read it from end to end. */
const FEW_ROWS = 1_000;
const PLAN = /duration: [\d.]+ ms {2}plan:\n((?:\t.*\n)+)/g;

/** How PostgreSQL ran a statement. */
export interface RunPlan {
  statement: string;
  /** Tables that were read from one end to the other. */
  scanned: string[];
  indexes: string[];
  /** Rows that were read, also those that a filter left out. */
  rowsRead: number;
}

/** PostgreSQL's own log of how it runs what the service sends, named statements and their generic plans included. */
export class PlanLog {
  private readonly database: Client;
  private readonly file: string;

  /** Settings that the server has to be started with. */
  static readonly SETTINGS = { session_preload_libraries: 'auto_explain' };

  constructor(database: Client, file: string) {
    this.database = database;
    this.file = file;
  }

  /** Explains everything that runs while `work` does. */
  async during(work: () => Promise<unknown>): Promise<RunPlan[]> {
    const { size } = await stat(this.file);
    await this.configure({ log_format: 'json', log_analyze: 'on', log_timing: 'off', log_min_duration: '0' });
    await work();
    await this.configure({ log_min_duration: '-1' });
    const handle = await open(this.file);
    try {
      const { buffer, bytesRead } = await handle.read({
        buffer: Buffer.alloc((await handle.stat()).size - size),
        position: size,
      });
      const text = buffer.toString('utf8', 0, bytesRead);
      return [...text.matchAll(PLAN)].map(([, json = '']) =>
        toRunPlan(JSON.parse(json.replaceAll('\n\t', '\n'))),
      );
    } finally {
      await handle.close();
    }
  }

  private async configure(settings: Record<string, string>): Promise<void> {
    for (const [name, value] of Object.entries(settings)) {
      await this.database.query(`ALTER SYSTEM SET auto_explain.${name} = '${value}'`);
    }
    await this.database.query('SELECT pg_reload_conf()');
    await delay(SETTLE_MS);
  }
}

function toRunPlan(explained: unknown): RunPlan {
  const nodes = [...nodesOf(jsonAt(explained, 'Plan'))];
  const named = (isWanted: (node: unknown) => boolean, member: string): string[] => [
    ...new Set(nodes.filter(isWanted).map((node) => jsonText(node, member) ?? '')),
  ];
  return {
    statement: (jsonText(explained, 'Query Text') ?? '').replaceAll(/\s+/g, ' ').trim(),
    scanned: named(
      (node) => jsonText(node, 'Node Type') === 'Seq Scan' && rowsReadBy(node) > FEW_ROWS,
      'Relation Name',
    ),
    indexes: named((node) => jsonText(node, 'Index Name') !== null, 'Index Name'),
    rowsRead: nodes.map(rowsReadBy).reduce((sum, rows) => sum + rows, 0),
  };
}

function* nodesOf(node: unknown): Generator {
  yield node;
  for (const child of jsonList(node, 'Plans')) {
    yield* nodesOf(child);
  }
}

/** PostgreSQL tells the average of a node that runs several times. */
function rowsReadBy(node: unknown): number {
  const count = (name: string): number => jsonNumber(node, name) ?? 0;
  const isScan = jsonText(node, 'Relation Name') !== null;
  const rows =
    count('Actual Rows') + count('Rows Removed by Filter') + count('Rows Removed by Index Recheck');
  return isScan ? rows * count('Actual Loops') : 0;
}
