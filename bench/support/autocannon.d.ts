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
  }

  interface LoadOptions {
    url: string;
    connections: number;
    /** Seconds. */
    duration: number;
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
