import { hash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError } from '../common/errors/domain-error.js';
import { ApiKeyVerifier } from './api-key.verifier.js';
import type { AuthUser } from './auth.decorators.js';

const CODE_BYTES = 32;
const VALID_MS = 600_000;
/** The oldest code is forgotten first. */
const MAX_CODES = 16;

export interface ExchangedCode {
  key: string;
  user: AuthUser;
}

/** What a code is exchanged for; our own console never gets a key. */
export type CodePurpose = 'session' | 'key';

interface IssuedCode {
  key: string;
  purpose: CodePurpose;
  expiresAt: number;
}

/**
 * Codes that stand for an API key in a link, valid once and for ten minutes. They are in memory only, which is
 * enough: a link leads to the process that printed it.
 */
@Injectable()
export class OneTimeCodes {
  /** Issued codes by their hash. */
  private readonly issued = new BoundedCache<string, IssuedCode>(MAX_CODES);

  constructor(
    private readonly verifier: ApiKeyVerifier,
    private readonly clock: Clock,
  ) {}

  issue(key: string, purpose: CodePurpose): string {
    const code = randomBytes(CODE_BYTES).toString('base64url');
    this.issued.set(digest(code), { key, purpose, expiresAt: this.clock.now() + VALID_MS });
    return code;
  }

  /**
   * Exchanges a code for its key, once. @throws DomainError for an unknown, used or expired code, one for another
   * purpose, or a revoked key
   */
  async exchange(code: string, purpose: CodePurpose): Promise<ExchangedCode> {
    const name = digest(code);
    const issued = this.issued.get(name);
    this.issued.delete(name);
    if (issued?.purpose === purpose && this.clock.now() < issued.expiresAt) {
      const user = await this.verifier.verify(issued.key);
      if (user) {
        return { key: issued.key, user };
      }
    }
    throw new DomainError('unauthorized', UNUSABLE_CODE);
  }
}

export const UNUSABLE_CODE =
  'This link has been used, or is older than ten minutes. Start the service again for another one, or enter a key.';

function digest(code: string): string {
  return hash('sha256', code, 'base64url');
}
