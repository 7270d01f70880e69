import { type DynamicModule, Global, Module } from '@nestjs/common';
import { type CipherKey, SecretCipher } from '@slipway/common/secret-cipher.js';

@Global()
@Module({})
export class CryptoModule {
  static register(keys: readonly CipherKey[]): DynamicModule {
    return {
      module: CryptoModule,
      providers: [{ provide: SecretCipher, useValue: new SecretCipher(keys) }],
      exports: [SecretCipher],
    };
  }
}
