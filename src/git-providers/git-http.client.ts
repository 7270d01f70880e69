import type { OnApplicationShutdown } from '@nestjs/common';
import { GuardedHttpClient } from '../common/http/guarded-http.client.js';

/** The one client for calls to git hosts and to their identity provider; closes its connections at shutdown. */
export class GitHttpClient extends GuardedHttpClient implements OnApplicationShutdown {
  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }
}
