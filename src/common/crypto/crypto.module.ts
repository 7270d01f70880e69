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
