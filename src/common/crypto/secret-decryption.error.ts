/** A stored secret that cannot be read: unknown key id, or a record that was altered or moved. */
export class SecretDecryptionError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'SecretDecryptionError';
  }
}
