import autocannon from 'autocannon';

export interface LoadOptions {
  /** Seconds. */
  duration: number;
  connections: number;
}

/**
 * Sends the requests over and over, every connection from another place in the list on, so that they do not all work
 * on the same rows at once.
 *
 * @returns answers per second
 * @throws Error when anything but 2xx came back: such a number would mean nothing
 */
export async function answersPerSecond(
  url: string,
  requests: autocannon.LoadRequest[],
  { duration, connections }: LoadOptions,
): Promise<number> {
  let clients = 0;
  const result = await autocannon({
    url,
    connections,
    duration,
    setupClient: (client) => {
      const start = Math.floor((clients * requests.length) / connections);
      clients += 1;
      client.setRequests([...requests.slice(start), ...requests.slice(0, start)]);
    },
  });
  const { errors, timeouts, non2xx } = result;
  if (errors + timeouts + non2xx > 0) {
    throw new Error(`${url}: ${errors} errors, ${timeouts} timeouts, ${non2xx} answers other than 2xx`);
  }
  return result.requests.average;
}
