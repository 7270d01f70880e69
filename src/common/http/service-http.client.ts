import type { OnApplicationShutdown } from '@nestjs/common';
import { GuardedHttpClient, type GuardedHttpOptions } from '@slipway/common/http/guarded-http.client.js';
import { currentRequest } from '@slipway/api/requests/request-context.js';

/**
 * Takes connections from the share of the user whose request it is, and closes with the application. Features make classes of
 * it, by which the client with their limits is injected.
 */
export class ServiceHttpClient extends GuardedHttpClient implements OnApplicationShutdown {
  constructor(options: GuardedHttpOptions) {
    super({ ...options, currentHolder: () => currentRequest()?.userId });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }
}
