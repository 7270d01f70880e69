import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { SecretCipher, SecretDecryptionError } from '../common/crypto/secret-cipher.js';
import { ConfigError } from '../config/config.error.js';
import { ServiceStateRepository } from './service-state.repository.js';

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
          `ENCRYPTION_KEYS: the stored secrets were encrypted with another key (${error.message}); give that key too, after the new one`,
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
