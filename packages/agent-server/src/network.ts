import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 10;
/** The route is the last thing that slirp4netns configures. */
const DEFAULT_ROUTE = /^\w+\t00000000\t/m;

/** Resolves when this network leads somewhere, or is not waited for any more. The service ends what it cannot connect. */
export async function networkConnected(stopped: AbortSignal = new AbortController().signal): Promise<void> {
  while (!stopped.aborted && !DEFAULT_ROUTE.test(await readFile('/proc/net/route', 'utf8'))) {
    await delay(POLL_MS);
  }
}
