import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

const IV_BYTES = 12;
const TAG_BYTES = 16;
/** A call of the random generator costs as much as an encryption. */
const DRAWN_IVS = 128;
const DERIVED_BYTES = 32;

export interface CipherKey {
  id: string;
  bytes: Buffer;
}

/** An encrypted column, so that a key rotation finds all of its records. */
export interface EncryptedColumn {
  table: string;
  column: string;
  /** Columns of the primary key, which are part of the binding. */
  keyColumns: string[];
  /** Records that a rotation reads at a time, where they are large. */
  batch?: number;
  binding(row: Record<string, string>): string;
}

/** A column of a table with ids: what is copied to another row does not decrypt. */
export function columnById(table: string, column: string): EncryptedColumn {
  return { table, column, keyColumns: ['id'], binding: ({ id = '' }) => `${table}.${column}:${id}` };
}

/** Unknown key id, or a record that was altered or moved. */
export class SecretDecryptionError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'SecretDecryptionError';
  }
}

/** AES-256-GCM: `keyId.base64url(iv ‖ tag ‖ ciphertext)`. A copy in another row does not decrypt (`binding`). */
export class SecretCipher {
  /** A key given as bytes is parsed again for each record, which costs more than the cipher. */
  private readonly keys: Map<string, KeyObject>;
  readonly currentKeyId: string;
  private readonly currentKey: KeyObject;
  private drawn = Buffer.alloc(0);

  /** @param keys the first encrypts, all decrypt */
  constructor(keys: readonly CipherKey[]) {
    const [first] = keys;
    if (!first) {
      throw new Error('SecretCipher needs at least one key');
    }
    this.keys = new Map(keys.map(({ id, bytes }) => [id, createSecretKey(bytes)]));
    this.currentKeyId = first.id;
    this.currentKey = createSecretKey(first.bytes);
  }

  encrypt(plaintext: string, binding: string): string {
    const iv = this.nextIv();
    const cipher = createCipheriv('aes-256-gcm', this.currentKey, iv);
    cipher.setAAD(Buffer.from(binding, 'utf8'));
    const body = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
    return `${this.currentKeyId}.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`;
  }

  /** @throws SecretDecryptionError for an unknown key id or a record that does not belong to `binding` */
  decrypt(record: string, binding: string): string {
    const keyId = keyIdOf(record);
    const key = this.keys.get(keyId);
    if (!key) {
      throw new SecretDecryptionError(`no encryption key with id "${keyId}" is configured`);
    }
    const bytes = Buffer.from(record.slice(keyId.length + 1), 'base64url');
    if (bytes.length < IV_BYTES + TAG_BYTES) {
      throw new SecretDecryptionError('the encrypted record is too short');
    }
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES));
      decipher.setAAD(Buffer.from(binding, 'utf8'));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      return Buffer.concat([
        decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)),
        decipher.final(),
      ]).toString('utf8');
    } catch (error) {
      throw new SecretDecryptionError(`a record under encryption key "${keyId}" does not decrypt`, {
        cause: error,
      });
    }
  }

  /** A secret per purpose that reveals no key of ours; it stays the same until the first key changes. */
  derive(purpose: string): string {
    return derived(this.currentKey, purpose).toString('base64url');
  }

  /** Whether `derive` has answered this under any of the keys. Compares in constant time. */
  hasDerived(purpose: string, secret: string): boolean {
    // Compares texts, as several base64 texts decode to the same bytes.
    const given = Buffer.from(secret);
    return [...this.keys.values()].some((key) => {
      const expected = Buffer.from(derived(key, purpose).toString('base64url'));
      return given.length === expected.length && timingSafeEqual(expected, given);
    });
  }

  private nextIv(): Buffer {
    if (this.drawn.length === 0) {
      this.drawn = randomBytes(IV_BYTES * DRAWN_IVS);
    }
    const iv = this.drawn.subarray(0, IV_BYTES);
    this.drawn = this.drawn.subarray(IV_BYTES);
    return iv;
  }

  /** Whether the record is encrypted with another key than the first. */
  isOutdated(record: string): boolean {
    return keyIdOf(record) !== this.currentKeyId;
  }
}

function derived(key: KeyObject, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', purpose, DERIVED_BYTES));
}

function keyIdOf(record: string): string {
  return record.slice(0, Math.max(record.indexOf('.'), 0));
}
