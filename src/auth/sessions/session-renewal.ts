import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { Clock } from '@slipway/common/clock.js';
import { columnById, SecretCipher } from '@slipway/common/secret-cipher.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { AccessChanges } from '../access-changes.js';
import { type EndedSignIn, OidcIssuer } from '../oidc/oidc.issuer.js';
import { PersonsService } from '../oidc/persons.service.js';
import { SessionRepository } from './session.repository.js';

const REFRESH_TOKEN = columnById('sessions', 'refresh_token');
export const SESSION_ENCRYPTED_COLUMNS = [REFRESH_TOKEN];

/** Milliseconds after which the issuer is asked whether a session goes on. */
const RENEW_MS = 3_600_000;
/** Milliseconds until the issuer is asked again after it could not be reached. */
const RETRY_MS = 300_000;

/** Asks the issuer once an hour whether who signed in by it may go on; a refusal ends the session. */
@Injectable()
export class SessionRenewal {
  private readonly logger = new Logger(SessionRenewal.name);

  constructor(
    private readonly sessions: SessionRepository,
    private readonly issuer: OidcIssuer,
    private readonly persons: PersonsService,
    private readonly cipher: SecretCipher,
    private readonly clock: Clock,
    private readonly changes: AccessChanges,
  ) {}

  seal(id: string, refreshToken: string): string {
    return this.cipher.encrypt(refreshToken, REFRESH_TOKEN.binding({ id }));
  }

  /** Not awaited: no request waits for the issuer. */
  renewIfDue(id: string, renewedAt: Date | null, now: number): void {
    if (renewedAt !== null && now - renewedAt.getTime() >= RENEW_MS) {
      this.renew(id, now).catch((error: unknown) => {
        this.logger.warn('failed to renew a session', { session_id: id, error: errorMessage(error) });
      });
    }
  }

  /** Ends what the issuer logs out. */
  async logOut(which: EndedSignIn): Promise<void> {
    await this.sessions.logOut(which, new Date(this.clock.now()));
    this.changes.tell(null);
  }

  private async renew(id: string, now: number): Promise<void> {
    const due = await this.sessions.beginRenewal(id, new Date(now), new Date(now - RENEW_MS));
    if (due === null) {
      return;
    }
    try {
      const renewed = await this.issuer.refresh(this.cipher.decrypt(due, REFRESH_TOKEN.binding({ id })));
      await this.sessions.update({ id }, { refreshToken: this.seal(id, renewed.refreshToken) });
      if (renewed.claims !== null) {
        await this.persons.signIn(renewed.claims);
      }
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      if (error.code === 'unavailable') {
        await this.sessions.update({ id }, { renewedAt: new Date(now - RENEW_MS + RETRY_MS) });
        return;
      }
      this.logger.log('ended a session that the issuer does not renew', { session_id: id, code: error.code });
      await this.sessions.endByIssuer(id, new Date(now));
      this.changes.tell(null);
    }
  }
}
