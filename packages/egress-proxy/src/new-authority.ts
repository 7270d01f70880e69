// The certificates' library needs it before it is loaded.
import 'reflect-metadata';
import { randomBytes, type webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { EgressPolicy } from './protocol.js';

export const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 24 * 60 * 60_000;
const VALID_DAYS = 3650;

/** Makes the certificate authority of one sandbox, in PEM. @param name of the sandbox, in the subject */
export async function newAuthority(name: string): Promise<EgressPolicy['authority']> {
  const { keys, pem } = await newKeyPair();
  const now = Date.now();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: randomBytes(16).toString('hex'),
    name: `CN=Slipway sandbox ${name}`,
    // Clocks of sandboxes may be behind.
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + VALID_DAYS * DAY_MS),
    keys,
    signingAlgorithm: ECDSA,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: pem };
}

/** A pair for certificates, and its private key in PEM. */
export async function newKeyPair(): Promise<{ keys: webcrypto.CryptoKeyPair; pem: string }> {
  const keys = await crypto.subtle.generateKey(ECDSA, true, ['sign', 'verify']);
  const encoded = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  return { keys, pem: `-----BEGIN PRIVATE KEY-----\n${encoded}\n-----END PRIVATE KEY-----\n` };
}
