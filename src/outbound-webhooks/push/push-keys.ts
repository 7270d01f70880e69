import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { parseJson } from '@slipway/common/json-access.js';
import { type EncryptedColumn, SecretCipher } from '../../common/crypto/secret-cipher.js';
import { ServiceStateRepository } from '../../database/service-state.repository.js';

/** In base64url, as browsers and push services want them. */
export interface VapidKeys {
  publicKey: string;
  privateKey: string;
}

const BINDING = 'service_state.push_keys';

export const PUSH_KEYS_ENCRYPTED_COLUMNS: EncryptedColumn[] = [
  { table: 'service_state', column: 'push_keys', keyColumns: ['id'], binding: () => BINDING },
];

/** By which push services know this service (RFC 8292): made once, since browsers subscribe for it alone. */
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

  /** Of several replicas that start at once, the first one's are kept. */
  private async make(): Promise<string> {
    const { default: webPush } = await import('web-push');
    const made = JSON.stringify(webPush.generateVAPIDKeys());
    return await this.state.initialisePushKeys(this.cipher.encrypt(made, BINDING));
  }
}
