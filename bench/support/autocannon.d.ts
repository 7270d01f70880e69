/** The part of autocannon 8 that we use. The package has no types. */
declare module 'autocannon' {
  interface LoadRequest {
    method: string;
    path: string;
    headers: Record<string, string>;
    body?: string;
  }

  interface LoadClient {
    setRequests(requests: LoadRequest[]): void;
    on(event: 'response', listener: () => void): unknown;
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
    /** Milliseconds between samples, 1,000 by default; a run of an `amount` ends with one. */
    sampleInt?: number;
    setupClient: (client: LoadClient) => void;
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
