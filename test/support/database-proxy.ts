import { Relay } from './relay.js';

/** A relay in front of a test's database. */
export class DatabaseProxy extends Relay {
  static async start(databaseUrl: string): Promise<DatabaseProxy> {
    const { hostname, port, searchParams } = new URL(databaseUrl);
    const folder = searchParams.get('host');
    const proxy = new DatabaseProxy(
      folder === null ? { host: hostname, port: Number(port) } : { path: `${folder}/.s.PGSQL.${port}` },
    );
    await proxy.comeBack();
    return proxy;
  }

  /** The same database as seen through the relay. */
  urlOf(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.hostname = '127.0.0.1';
    url.port = String(this.port);
    url.searchParams.delete('host');
    return url.href;
  }
}
