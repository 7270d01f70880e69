import { hash, timingSafeEqual } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { AppConfig } from '../../config/app-config.js';

/** From which the key is derived that the service and the proxies that it starts share; others have `EGRESS_PROXY_KEY`. */
export const PROXY_KEY = 'egress-proxy.key';

/** By which the service knows its egress proxies. */
@Injectable()
export class EgressProxyKeys {
  private readonly shared: readonly Buffer[];

  constructor(
    private readonly cipher: SecretCipher,
    { egress }: AppConfig,
  ) {
    this.shared = (egress.proxyKeys ?? []).map(digestOf);
  }

  has(key: string): boolean {
    const digest = digestOf(key);
    return (
      this.cipher.hasDerived(PROXY_KEY, key) || this.shared.some((each) => timingSafeEqual(each, digest))
    );
  }
}

function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
