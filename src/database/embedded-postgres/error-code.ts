/** The `code` of a system or PostgreSQL error (`ENOENT`, `57P03`), undefined for everything else. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string') {
    return error.code;
  }
  return undefined;
}
