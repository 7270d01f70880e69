/**
 * Where repositories of tokens without a host are cloned from. Where the operator moved the API and said nothing about
 * clones, it is the API's own host: a token is never offered to another server than the one it was checked with.
 */
export function cloneUrl(
  given: string | undefined,
  apiUrl: string,
  defaults: { api: string; clone: string },
): string {
  if (given !== undefined) {
    return given;
  }
  if (new URL(apiUrl).origin === new URL(defaults.api).origin) {
    return defaults.clone;
  }
  const { protocol, host } = new URL(apiUrl);
  // GitHub with data residency has its API at a name of its own below the host of its repositories.
  return `${protocol}//${host.replace(/^api\./, '')}`;
}
