/** A secret given by value. */
export interface StaticSecret {
  kind: 'StaticSecret';
  description?: string | null;
  value: string | null;
}

/** A secret that is fetched when it is needed, so that it may change. */
export interface LookupSecret {
  kind: 'LookupSecret';
  description?: string | null;
  url: string;
  headers?: Record<string, string>;
}

export type SecretSource = StaticSecret | LookupSecret;
