export interface ServerInfo {
  /** Seconds. */
  uptime: number;
  /** Seconds since something last ran or a user last did something; looking at state does not count. */
  idle_time: number;
  title: string;
  version: string;
  docs: string;
  redoc: string;
  /** UUID, another one after each start: what was only in the memory of the server before is lost. */
  instance_id: string;
}
