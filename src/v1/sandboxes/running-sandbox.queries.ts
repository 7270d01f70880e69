import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { NamedStatement } from '../../database/named-statement.js';
import type { AgentServerTarget } from '../agent-servers/sandbox-address.js';
import type { SandboxRowStatus } from './sandbox-status.js';
import { currentPorts, type PortAddresses } from './sandbox.entity.js';
import { isSandboxId, sessionKeyBinding, sessionKeyHash } from './session-key.js';

const FIND_TARGET = `
  SELECT id, user_id, address, port_addresses, session_key, generation, stopped_generation, spec_id, status
  FROM sandboxes
  WHERE id = $1 AND address IS NOT NULL`;

const IS_CURRENT = `
  SELECT 1 AS found
  FROM sandboxes
  WHERE id = $1 AND generation = $2 AND address = $3 AND session_key_hash = $4
    AND status IN ('RUNNING', 'PAUSING', 'DELETING')`;

interface TargetRow {
  id: string;
  user_id: string;
  address: string;
  port_addresses: PortAddresses | null;
  session_key: string;
  generation: number;
  stopped_generation: number | null;
  spec_id: string;
  status: SandboxRowStatus;
}

/** A sandbox with an agent server that can be called. */
export interface RunningSandbox extends AgentServerTarget {
  sandboxId: string;
  userId: string;
  /** Where the ports of what agents start are reached, by name. */
  ports: Readonly<Record<string, string>>;
  /** Counts starts: what an agent server was told in an earlier generation is lost. */
  generation: number;
  /** Its user stopped it before this start: what ran then goes on only when the user says so. */
  stoppedByUser: boolean;
  specId: string;
  status: SandboxRowStatus;
}

/** Where the agent servers of sandboxes are right now. */
@Injectable()
export class RunningSandboxQueries {
  private readonly findTarget = new NamedStatement<TargetRow>('sandbox_target', FIND_TARGET);

  private readonly findCurrent = new NamedStatement<{ found: number }>('sandbox_current', IS_CURRENT);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly cipher: SecretCipher,
  ) {}

  /** Null unless the sandbox is RUNNING. */
  async target(sandboxId: string): Promise<RunningSandbox | null> {
    const found = await this.lastTarget(sandboxId);
    return found?.status === 'RUNNING' ? found : null;
  }

  /**
   * Like `target`, and also for a sandbox that is about to be stopped or removed: its agent server still answers while
   * the listeners of `SandboxEvents.beforeStop` read what would be lost otherwise. Users' requests go to `target`.
   */
  async lastTarget(sandboxId: string): Promise<RunningSandbox | null> {
    if (!isSandboxId(sandboxId)) {
      return null;
    }
    const [row] = await this.findTarget.run(this.dataSource, [sandboxId]);
    if (!row) {
      return null;
    }
    const { id, address, generation } = row;
    const sessionKey = this.cipher.decrypt(row.session_key, sessionKeyBinding(id));
    return {
      sandboxId: id,
      userId: row.user_id,
      address,
      ports: currentPorts(row.port_addresses, generation),
      sessionKey,
      generation,
      stoppedByUser: row.stopped_generation === generation - 1,
      specId: row.spec_id,
      status: row.status,
      isCurrent: async () => {
        const values = [id, generation, address, sessionKeyHash(sessionKey)];
        return (await this.findCurrent.run(this.dataSource, values)).length > 0;
      },
    };
  }
}
