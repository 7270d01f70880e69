import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Not, Repository } from 'typeorm';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { HostIdentity } from './host-identity.js';
import { Sandbox } from './sandbox.entity.js';
import { sessionKeyBinding } from './session-key.js';

export interface ExposedSandbox {
  id: string;
  port: number | null;
}

const UNIQUE_VIOLATION = '23505';

/** The loopback ports of this host's sandboxes. A sandbox keeps its port for as long as it exists. */
@Injectable()
export class ExposedPortRepository {
  constructor(
    @InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>,
    private readonly host: HostIdentity,
    private readonly cipher: SecretCipher,
  ) {}

  /** Sandboxes that have a port or should get one; a stopped one without a port gets it at its next start. */
  async list(): Promise<ExposedSandbox[]> {
    const hostId = this.host.id;
    const found = await this.sandboxes.find({
      select: { id: true, exposePort: true },
      where: [
        { hostId, status: Not('DELETING'), exposePort: Not(IsNull()) },
        { hostId, status: 'RUNNING' },
      ],
    });
    return found.map(({ id, exposePort: port }) => ({ id, port }));
  }

  /** Null when this host has no such sandbox. */
  async find(id: string): Promise<(ExposedSandbox & { sessionKey: string }) | null> {
    const found = await this.sandboxes.findOne({
      select: { id: true, exposePort: true, sessionKey: true },
      where: { id, hostId: this.host.id, status: Not('DELETING') },
    });
    return found
      ? {
          id,
          port: found.exposePort,
          sessionKey: this.cipher.decrypt(found.sessionKey, sessionKeyBinding(id)),
        }
      : null;
  }

  /** Replaces the port `previous`; false if that has changed, or another sandbox has the new port. */
  async assign(id: string, port: number | null, previous: number | null): Promise<boolean> {
    try {
      const { affected } = await this.sandboxes.update(
        { id, hostId: this.host.id, status: Not('DELETING'), exposePort: previous ?? IsNull() },
        // A port is no activity.
        { exposePort: port, updatedAt: () => 'updated_at' },
      );
      return affected === 1;
    } catch (error) {
      // Sandboxes that are being removed keep their port too: their clients may not know yet.
      if (errorCode(error) === UNIQUE_VIOLATION) {
        return false;
      }
      throw error;
    }
  }
}
