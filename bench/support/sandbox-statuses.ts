import type { Client, Notification } from 'pg';
import { jsonText } from '../../src/common/json-access.js';

const CHANNEL = 'bench_sandbox_status';
const PATIENCE_MS = 120_000;

interface StatusRow {
  status: string;
}

/**
 * Learns of statuses from the row in the moment of its commit: asking again and again would be late, and would take
 * processor time from what is measured. The row is what the API answers from, but for one thing: there a sandbox that is
 * being paused is PAUSED.
 */
export class SandboxStatuses {
  private readonly database: Client;

  private constructor(database: Client) {
    this.database = database;
  }

  static async watch(database: Client): Promise<SandboxStatuses> {
    await database.query(
      `CREATE FUNCTION bench_tell_status() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_notify('${CHANNEL}', json_build_object('id', NEW.id, 'status', NEW.status)::text); RETURN NULL; END $$;
       CREATE TRIGGER bench_tell_status AFTER UPDATE OF status ON sandboxes
         FOR EACH ROW EXECUTE FUNCTION bench_tell_status();
       LISTEN ${CHANNEL}`,
    );
    return new SandboxStatuses(database);
  }

  /** @throws Error when the sandbox fails, or does not get there within two minutes */
  async until(id: string, wanted: string): Promise<void> {
    const reached = Promise.withResolvers<void>();
    const judge = (status: string | null): void => {
      if (status === wanted) {
        reached.resolve();
      } else if (status === 'ERROR') {
        reached.reject(new Error('the sandbox failed; its row says why'));
      }
    };
    const hear = ({ payload }: Notification): void => {
      const told: unknown = JSON.parse(payload ?? 'null');
      if (jsonText(told, 'id') === id) {
        judge(jsonText(told, 'status'));
      }
    };
    // It may have got there before anybody listened.
    const look = async (): Promise<void> => {
      const { rows } = await this.database.query<StatusRow>('SELECT status FROM sandboxes WHERE id = $1', [
        id,
      ]);
      judge(rows[0]?.status ?? null);
    };
    const giveUp = setTimeout(
      () => reached.reject(new Error(`status ${wanted} did not happen`)),
      PATIENCE_MS,
    );
    this.database.on('notification', hear);
    try {
      await Promise.all([look(), reached.promise]);
    } finally {
      clearTimeout(giveUp);
      this.database.off('notification', hear);
    }
  }
}
