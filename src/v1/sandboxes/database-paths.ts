import path from 'node:path';

/**
 * Files of this machine that open the database: the folder of its socket and the client's key, where its address names
 * such (`?host=/folder`, `postgres://%2Ffolder/name`, `?sslkey=/file`).
 */
export function databasePaths(databaseUrl: string | null): string[] {
  if (databaseUrl === null || !URL.canParse(databaseUrl)) {
    return [];
  }
  const { hostname, searchParams } = new URL(databaseUrl);
  const host = searchParams.get('host') ?? decoded(hostname);
  const key = searchParams.get('sslkey');
  return [...(host.startsWith('/') ? [host] : []), ...(key === null ? [] : [path.resolve(key)])];
}

function decoded(hostname: string): string {
  try {
    return decodeURIComponent(hostname);
  } catch {
    // A name with a percent sign of its own is no path.
    return hostname;
  }
}
