import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Column, DataSource, Entity, type EntityManager, IsNull, PrimaryColumn, Repository } from 'typeorm';
import { SecretCipher, SecretDecryptionError } from '@slipway/common/secret-cipher.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';

@Entity('service_state')
export class ServiceState {
  @PrimaryColumn('integer') id: number;
  @Column('uuid') instanceId: string;

  /** Encrypted with the current key: at boot it tells whether the configured keys fit the data. */
  @Column('text', { nullable: true }) keyCheck: string | null;

  /** Encrypted: those of Web Push. */
  @Column('text', { nullable: true }) pushKeys: string | null;
}

@Injectable()
export class ServiceStateRepository {
  private readonly rows: Repository<ServiceState>;

  constructor(dataSource: DataSource) {
    this.rows = dataSource.getRepository(ServiceState);
  }

  async instanceId(): Promise<string> {
    return (await this.row()).instanceId;
  }

  async keyCheck(): Promise<string | null> {
    return (await this.row()).keyCheck;
  }

  async replaceKeyCheck(manager: EntityManager, keyCheck: string): Promise<void> {
    await manager.update(ServiceState, { id: 1 }, { keyCheck });
  }

  /** Does nothing if the row exists. */
  async initialiseKeyCheck(keyCheck: string): Promise<void> {
    await this.rows.update({ id: 1, keyCheck: IsNull() }, { keyCheck });
  }

  async pushKeys(): Promise<string | null> {
    return (await this.row()).pushKeys;
  }

  /** Returns those that are stored: the given ones, if there were none. */
  async initialisePushKeys(pushKeys: string): Promise<string> {
    await this.rows.update({ id: 1, pushKeys: IsNull() }, { pushKeys });
    return (await this.pushKeys()) ?? pushKeys;
  }

  private async row(): Promise<ServiceState> {
    return await this.rows.findOneByOrFail({ id: 1 });
  }
}

const BINDING = 'service_state.key_check';
const KNOWN_TEXT = 'slipway';

/** Refuses to start with encryption keys that do not fit the stored secrets. */
@Injectable()
export class EncryptionKeyCheck implements OnModuleInit {
  constructor(
    private readonly state: ServiceStateRepository,
    private readonly cipher: SecretCipher,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.state.initialiseKeyCheck(this.cipher.encrypt(KNOWN_TEXT, BINDING));
    const keyCheck = await this.state.keyCheck();
    try {
      this.cipher.decrypt(keyCheck ?? '', BINDING);
    } catch (error) {
      if (error instanceof SecretDecryptionError) {
        throw new ConfigError(
          `ENCRYPTION_KEYS: the stored secrets were encrypted with another key (${error.message}); give that key too, under the id that it had, after the new one (the embedded database had those of DATA_DIR/encryption-keys)`,
        );
      }
      throw error;
    }
  }

  /** Encrypts the known text with the first key, in the caller's transaction: the last step of a key rotation. */
  async renew(manager: EntityManager): Promise<void> {
    await this.state.replaceKeyCheck(manager, this.cipher.encrypt(KNOWN_TEXT, BINDING));
  }
}
