// The certificates' library needs it before it is loaded.
import 'reflect-metadata';
import { createPrivateKey, hash, randomBytes, type webcrypto } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { LRUCache } from 'lru-cache';
import { ECDSA, newKeyPair } from './new-authority.js';
import type { EgressPolicy } from './protocol.js';
import type { Target } from './target.js';

const DAY_MS = 24 * 60 * 60_000;
/** Clocks of sandboxes may be behind. */
const VALID_BEFORE_MS = DAY_MS;
const VALID_MS = 3 * DAY_MS;
const MAX_CONTEXTS = 2_048;
const MAX_COMMON_NAME = 64;

type Authority = EgressPolicy['authority'];

/** Certificates of hosts whose TLS is opened, made by the authority of the sandbox that asks. One key serves them all. */
export class SandboxAuthorities {
  private readonly contexts = new LRUCache<string, Promise<SecureContext>>({
    max: MAX_CONTEXTS,
    ttl: DAY_MS,
  });
  private key: ReturnType<typeof newKeyPair> | undefined;

  get size(): number {
    return this.contexts.size;
  }

  async contextFor(authority: Authority, target: Target): Promise<SecureContext> {
    const name = `${hash('sha256', authority.certificate)} ${target.host}`;
    let context = this.contexts.get(name);
    if (context === undefined) {
      context = this.make(authority, target);
      this.contexts.set(name, context);
      // A failure is not kept.
      context.catch(() => this.contexts.delete(name));
    }
    return await context;
  }

  private async make(authority: Authority, { host, isAddress }: Target): Promise<SecureContext> {
    this.key ??= newKeyPair();
    const { keys, pem } = await this.key;
    const issuer = new X509Certificate(authority.certificate);
    const now = Date.now();
    const certificate = await X509CertificateGenerator.create({
      serialNumber: randomBytes(16).toString('hex'),
      issuer: issuer.subject,
      subject: `CN=${isAddress || host.length > MAX_COMMON_NAME ? 'egress' : host}`,
      notBefore: new Date(now - VALID_BEFORE_MS),
      notAfter: new Date(Math.min(now + VALID_MS, issuer.notAfter.getTime())),
      publicKey: keys.publicKey,
      signingKey: await signingKey(authority.key),
      signingAlgorithm: ECDSA,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension([{ type: isAddress ? 'ip' : 'dns', value: host }]),
        await issuerIdentifier(issuer),
      ],
    });
    return createSecureContext({
      cert: `${certificate.toString('pem')}\n${authority.certificate}`,
      key: pem,
      minVersion: 'TLSv1.2',
    });
  }
}

/** Of either form of PEM. */
async function signingKey(pem: string): Promise<webcrypto.CryptoKey> {
  const encoded = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return await crypto.subtle.importKey('pkcs8', encoded, ECDSA, false, ['sign']);
}

/** As the authority's own certificate names its key: checkers compare the two. */
async function issuerIdentifier(issuer: X509Certificate): Promise<AuthorityKeyIdentifierExtension> {
  const own = issuer.getExtension(SubjectKeyIdentifierExtension);
  return own === null
    ? await AuthorityKeyIdentifierExtension.create(issuer.publicKey)
    : new AuthorityKeyIdentifierExtension(own.keyId);
}
