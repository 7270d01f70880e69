import { Client } from 'pg';
import { until } from '../../../support/until.js';

/** Rows wait here before they leave a status: `start:TITLE:STATUS` and `sandbox:ID:STATUS`. */
const INSTALL = `
  CREATE FUNCTION journey_gate() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'DELETE' OR NEW.status <> OLD.status THEN
      PERFORM pg_advisory_xact_lock_shared(hashtext(
        CASE TG_TABLE_NAME
          WHEN 'sandboxes' THEN 'sandbox:' || OLD.id
          ELSE 'start:' || (to_jsonb(OLD) #>> '{request,title}')
        END || ':' || OLD.status));
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  END $$;
  CREATE TRIGGER journey_gate BEFORE UPDATE OR DELETE ON sandboxes
    FOR EACH ROW EXECUTE FUNCTION journey_gate();
  CREATE TRIGGER journey_gate BEFORE UPDATE ON app_conversation_start_tasks
    FOR EACH ROW EXECUTE FUNCTION journey_gate();`;

const WAITING = `
  SELECT 1 FROM pg_locks
  WHERE locktype = 'advisory' AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

const CUT_OFF = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`;

/**
 * Holds rows just before they leave a status: what the status is for has been done, and is not written down yet. That
 * is the worst moment for the process that does it to die, and here it lasts.
 */
export class Gates {
  private constructor(private readonly client: Client) {}

  static async install(databaseUrl: string): Promise<Gates> {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query(INSTALL);
    return new Gates(client);
  }

  async shut(name: string): Promise<void> {
    await this.client.query('SELECT pg_advisory_lock(hashtext($1))', [name]);
  }

  async untilWaiting(count: number): Promise<void> {
    await until(async () => (await this.client.query(WAITING)).rowCount === count);
  }

  /**
   * Ends the sessions of a dead process, which would carry out what it asked for last, and opens all gates. Sessions of
   * the living are ended as well.
   */
  async openForSurvivors(): Promise<void> {
    await this.client.query(CUT_OFF);
    await until(async () => (await this.client.query(WAITING)).rowCount === 0);
    await this.client.query('SELECT pg_advisory_unlock_all()');
  }

  async close(): Promise<void> {
    await this.client.end();
  }
}
