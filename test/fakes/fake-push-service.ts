import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  type ECDH,
  hkdfSync,
  randomBytes,
  verify,
} from 'node:crypto';
import { type FakeRequest, FakeServer } from './fake-server.js';

export interface ReceivedPush {
  path: string;
  headers: Record<string, string>;
  message: Record<string, string>;
  /** What the service says of itself (RFC 8292); its signature is good. */
  claims: { aud: string; sub: string; exp: number };
  /** The key that has signed. */
  signer: string;
}

/** A browser that has subscribed at a push service. */
export class FakeBrowser {
  private readonly secret: ECDH = createECDH('prime256v1');
  private readonly auth = randomBytes(16);
  private readonly publicKey = this.secret.generateKeys();

  constructor(readonly endpoint: string) {}

  /** The form that `PushSubscription.toJSON()` gives it. */
  get subscription(): object {
    const [p256dh, auth] = [this.publicKey, this.auth].map((bytes) => bytes.toString('base64url'));
    return { endpoint: this.endpoint, expirationTime: null, keys: { p256dh, auth } };
  }

  /** Decrypts a message of one record as RFC 8188 and 8291 say. */
  read({ path, headers, bytes }: FakeRequest): ReceivedPush {
    const salt = bytes.subarray(0, 16);
    const end = 21 + bytes.readUInt8(20);
    const sender = bytes.subarray(21, end);
    const shared = this.secret.computeSecret(sender);
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), this.publicKey, sender]);
    const derive = (from: Buffer, by: Buffer, what: Buffer | string, length: number): Buffer =>
      Buffer.from(hkdfSync('sha256', from, by, what, length));
    const input = derive(shared, this.auth, info, 32);
    const key = derive(input, salt, 'Content-Encoding: aes128gcm\0', 16);
    const nonce = derive(input, salt, 'Content-Encoding: nonce\0', 12);
    const decipher = createDecipheriv('aes-128-gcm', key, nonce);
    decipher.setAuthTag(bytes.subarray(-16));
    const text = Buffer.concat([decipher.update(bytes.subarray(end, -16)), decipher.final()]);
    const message = JSON.parse(text.subarray(0, text.lastIndexOf(2)).toString()) as Record<string, string>;
    return { path, headers, message, ...claimsOf(headers['authorization'] ?? '') };
  }
}

function claimsOf(authorization: string): Pick<ReceivedPush, 'claims' | 'signer'> {
  const [, head = '', body = '', signature = '', signer = ''] =
    /^vapid t=([\w-]+)\.([\w-]+)\.([\w-]+), k=([\w-]+)$/.exec(authorization) ?? [];
  const point = Buffer.from(signer, 'base64url');
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'));
  const key = createPublicKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' } });
  const signed = Buffer.from(`${head}.${body}`);
  const proof = Buffer.from(signature, 'base64url');
  if (!verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, proof)) {
    throw new Error('the signature is not that of the key');
  }
  return { claims: JSON.parse(Buffer.from(body, 'base64url').toString()) as ReceivedPush['claims'], signer };
}

/** A push service, as those of Mozilla, Google and Apple are (RFC 8030). */
export async function startPushService(): Promise<FakeServer> {
  return await FakeServer.start(({ path }) => ({ status: 201, headers: { location: `/message${path}` } }));
}
