import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { parseJson } from '@slipway/common/json-access.js';
import { type EncryptedColumn, SecretCipher } from '@slipway/common/secret-cipher.js';
import { ServiceStateRepository } from '../../database/service-state.repository.js';

/** Keys in base64url, as browsers and push services expect. */
export interface VapidKeys {
  publicKey: string;
  privateKey: string;
}

const BINDING = 'service_state.push_keys';

export const PUSH_KEYS_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  { table: 'service_state', column: 'push_keys', keyColumns: ['id'], binding: () => BINDING },
];

/** The keys that identify this service to push services (RFC 8292). They are made once, as browsers subscribe for one key. */
@Injectable()
export class PushKeys implements OnApplicationBootstrap {
  private keys: VapidKeys | null = null;

  constructor(
    private readonly state: ServiceStateRepository,
    private readonly cipher: SecretCipher,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.pair();
  }

  async pair(): Promise<VapidKeys> {
    this.keys ??= parseJson(
      this.cipher.decrypt((await this.state.pushKeys()) ?? (await this.make()), BINDING),
    ) as VapidKeys;
    return this.keys;
  }

  /** When several replicas start at once, the keys of the first are kept. */
  private async make(): Promise<string> {
    const { default: webPush } = await import('web-push');
    const made = JSON.stringify(webPush.generateVAPIDKeys());
    return await this.state.initialisePushKeys(this.cipher.encrypt(made, BINDING));
  }
}
