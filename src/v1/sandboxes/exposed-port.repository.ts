import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { NamedStatement } from '../../database/named-statement.js';
import { HostIdentity } from './host-identity.js';
import { sessionKeyBinding } from './session-key.js';

/** Sandboxes that stopped before they ever had a port get one with their next start. */
const OF_HOST = `
  SELECT id, expose_port
  FROM sandboxes
  WHERE host_id = $1 AND status <> 'DELETING' AND (expose_port IS NOT NULL OR status = 'RUNNING')`;

const FIND = `
  SELECT id, expose_port, session_key
  FROM sandboxes
  WHERE id = $1 AND host_id = $2 AND status <> 'DELETING'`;

/** Sandboxes that are being removed keep their port from others as well: their clients may not know yet. */
const ASSIGN = `
  UPDATE sandboxes
  SET expose_port = $3
  WHERE id = $1 AND host_id = $2 AND status <> 'DELETING' AND expose_port IS NOT DISTINCT FROM $4
    AND NOT EXISTS (SELECT FROM sandboxes other WHERE other.host_id = $2 AND other.expose_port = $3)
  RETURNING id`;

interface PortRow {
  id: string;
  expose_port: number | null;
}

/** A sandbox of this host, and the loopback port at which clients reach its agent server. */
export interface ExposedSandbox {
  id: string;
  /** Null: it has none yet. */
  port: number | null;
}

/** The loopback ports of the sandboxes of this host. A sandbox keeps its port for as long as it exists. */
@Injectable()
export class ExposedPortRepository {
  private readonly ofHost = new NamedStatement<PortRow>('exposed_ports_of_host', OF_HOST);
  private readonly findOne = new NamedStatement<PortRow & { session_key: string }>('exposed_port', FIND);
  private readonly assignPort = new NamedStatement<{ id: string }>('exposed_port_assign', ASSIGN);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly host: HostIdentity,
    private readonly cipher: SecretCipher,
  ) {}

  /** Sandboxes that have a port, or should have one. */
  async list(): Promise<ExposedSandbox[]> {
    const rows = await this.ofHost.run(this.dataSource, [this.host.id]);
    return rows.map(({ id, expose_port: port }) => ({ id, port }));
  }

  /** Null when this host has no such sandbox (any more). */
  async find(id: string): Promise<(ExposedSandbox & { sessionKey: string }) | null> {
    const [row] = await this.findOne.run(this.dataSource, [id, this.host.id]);
    return row
      ? {
          id,
          port: row.expose_port,
          sessionKey: this.cipher.decrypt(row.session_key, sessionKeyBinding(id)),
        }
      : null;
  }

  /**
   * @param port null: none from now on
   * @param previous the port that it had; null: none
   * @returns false when it has another one by now, or another sandbox has this one
   */
  async assign(id: string, port: number | null, previous: number | null): Promise<boolean> {
    const rows = await this.assignPort.run(this.dataSource, [id, this.host.id, port, previous]);
    return rows.length > 0;
  }
}
