import { Injectable, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Repository } from 'typeorm';
import { SecretCipher, SecretDecryptionError } from '../common/crypto/secret-cipher.js';
import { ConfigError } from '../config/config.error.js';
import { ServiceState } from './service-state.entity.js';

const BINDING = 'service_state.key_check';
const KNOWN_TEXT = 'slipway';

/** Refuses to start with encryption keys that do not fit the stored secrets. */
@Injectable()
export class EncryptionKeyCheck implements OnModuleInit {
  constructor(
    @InjectRepository(ServiceState) private readonly state: Repository<ServiceState>,
    private readonly cipher: SecretCipher,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.state.update(
      { id: 1, keyCheck: IsNull() },
      { keyCheck: this.cipher.encrypt(KNOWN_TEXT, BINDING) },
    );
    const { keyCheck } = await this.state.findOneByOrFail({ id: 1 });
    try {
      this.cipher.decrypt(keyCheck ?? '', BINDING);
    } catch (error) {
      if (error instanceof SecretDecryptionError) {
        throw new ConfigError(
          `ENCRYPTION_KEYS: the stored secrets were encrypted with another key (${error.message}); give that key too, after the new one`,
        );
      }
      throw error;
    }
  }

  /** Writes the known text again under the first key; the last step of a key rotation. */
  async renew(): Promise<void> {
    await this.state.update({ id: 1 }, { keyCheck: this.cipher.encrypt(KNOWN_TEXT, BINDING) });
  }
}
