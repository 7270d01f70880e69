import { Injectable, type ExecutionContext } from '@nestjs/common';
import { ThrottlerGuard } from '@nestjs/throttler';
import type { AuthenticatedRequest } from './authenticated-request.js';

/** Counts requests per API key, on this replica. Requests without a key (health, documents) are not counted. */
@Injectable()
export class KeyRateLimitGuard extends ThrottlerGuard {
  protected override shouldSkip(context: ExecutionContext): Promise<boolean> {
    // The limit that is switched off is asked for first: looking at a route's metadata costs more than this.
    return Promise.resolve(
      this.commonOptions.skipIf?.(context) === true ||
        context.switchToHttp().getRequest<AuthenticatedRequest>().user === undefined,
    );
  }

  protected override getTracker(request: AuthenticatedRequest): Promise<string> {
    return Promise.resolve(request.user?.keyId ?? '');
  }

  /** One counter per key over all routes (the default counts each route apart). */
  protected override generateKey(_context: unknown, tracker: string): string {
    return tracker;
  }
}
