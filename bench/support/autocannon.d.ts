/** The part of autocannon 8 that we use. The package has no types. */
declare module 'autocannon' {
  interface LoadRequest {
    method: string;
    path: string;
    headers: Record<string, string>;
    body?: string;
  }

  interface LoadOptions {
    url: string;
    /** Instead of host and port of the address. */
    socketPath?: string;
    connections: number;
    /** Seconds; `amount` counts before it. */
    duration?: number;
    /** Requests of all connections together. */
    amount?: number;
    setupClient: (client: { setRequests(requests: LoadRequest[]): void }) => void;
  }

  interface LoadResult {
    requests: { average: number };
    /** Milliseconds. */
    latency: { p50: number; p99: number };
    errors: number;
    timeouts: number;
    non2xx: number;
  }

  function autocannon(options: LoadOptions): Promise<LoadResult>;
  namespace autocannon {
    export { LoadOptions, LoadRequest, LoadResult };
  }
  export = autocannon;
}
