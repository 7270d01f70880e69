import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '@slipway/common/clock.js';
import { AccessChanges, VerifiedUsers } from '../access-changes.js';
import type { AuthUser } from '../auth.decorators.js';
import { IdentityRepository } from './identity.repository.js';
import { OidcIssuer } from './oidc.issuer.js';
import { PersonsService } from './persons.service.js';

const KEY_ID = /^jwt_([0-9a-f-]{36})_(\d+)$/;

/** Callers by access tokens of the issuer (RFC 9068). */
@Injectable()
export class BearerTokenVerifier {
  private readonly verified: VerifiedUsers<AuthUser>;

  constructor(
    private readonly issuer: OidcIssuer,
    private readonly persons: PersonsService,
    private readonly identities: IdentityRepository,
    private readonly clock: Clock,
    changes: AccessChanges,
  ) {
    this.verified = new VerifiedUsers(changes, clock);
  }

  /** Whether the text is a token that {@link verify} judges. */
  isOwn(text: string): boolean {
    return text.startsWith('eyJ') && this.issuer.isOwnToken(text);
  }

  /**
   * The token's user.
   * @throws DomainError unauthorized with what is wrong, unavailable, or as {@link PersonsService.signIn}
   */
  async verify(token: string): Promise<AuthUser | null> {
    return this.verified.find(hash('sha256', token, 'base64'), async () => {
      const claims = await this.issuer.verifyAccessToken(token);
      const { identityId, user } = await this.persons.signIn(claims);
      const endsAt = (claims.exp ?? 0) * 1000;
      return { user: { ...user, keyId: `jwt_${identityId}_${endsAt}` }, endsAt };
    });
  }

  isKeyId(id: string): boolean {
    return KEY_ID.test(id);
  }

  /** Which of the tokens with these ids are valid now. */
  async stillValid(ids: readonly string[]): Promise<string[]> {
    const now = this.clock.now();
    const tokens = ids.map((id) => ({ id, parts: KEY_ID.exec(id) ?? [] }));
    const enabled =
      tokens.length === 0
        ? new Set()
        : await this.identities.findEnabled(tokens.map(({ parts: [, identity = ''] }) => identity));
    return tokens
      .filter(({ parts: [, identity, end] }) => enabled.has(identity) && Number(end) > now)
      .map(({ id }) => id);
  }
}
