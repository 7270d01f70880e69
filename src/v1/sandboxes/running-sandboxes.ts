import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { AgentServerTarget } from '../agent-servers/agent-server-target.js';
import { currentPorts, type PortAddresses } from './port-addresses.js';
import { isSandboxId, sessionKeyBinding } from './sandbox-session-key.js';
import type { SandboxRowStatus } from './sandbox-status.js';

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
   * `SandboxListeners.beforePause` runs. For reading what would else be lost; users' requests go to `target`.
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
