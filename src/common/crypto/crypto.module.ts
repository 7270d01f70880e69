import { Global, Module, type DynamicModule } from '@nestjs/common';
import { SecretCipher, type CipherKey } from './secret-cipher.js';

/** Makes the cipher injectable everywhere by its class. */
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
