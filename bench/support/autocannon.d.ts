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
    connections: number;
    /** Seconds. */
    duration: number;
    setupClient: (client: { setRequests(requests: LoadRequest[]): void }) => void;
  }

  interface LoadResult {
    requests: { average: number };
    errors: number;
    timeouts: number;
    non2xx: number;
  }

  function autocannon(options: LoadOptions): Promise<LoadResult>;
  namespace autocannon {
    export { LoadRequest };
  }
  export = autocannon;
}
