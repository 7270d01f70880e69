import type { Demo } from '../../../demo/start-demo.js';
import { ApiClient } from '../../../test/system/journeys/support/api-client.js';

const UNWATCHED = { saw: () => undefined, follows: () => undefined };

/** Asks the service of a demo without its console, as its administrator by default. */
export function apiOf({ url, apiKey }: Pick<Demo, 'url' | 'apiKey'>, key = apiKey): ApiClient {
  return new ApiClient(() => url, key, UNWATCHED);
}
