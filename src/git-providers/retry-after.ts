/**
 * Whole seconds until trying again makes sense, or null when the headers do not tell. `Retry-After` (seconds
 * or an HTTP date, RFC 9110 section 10.2.3) comes first; otherwise an exhausted limit's reset time, one second
 * later: GitHub's `x-ratelimit-reset`, GitLab's `ratelimit-reset` (both epoch seconds,
 * https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/). Moments that have passed give 1.
 *
 * @param nowMs Epoch milliseconds.
 */
export function retryAfterSeconds(headers: Headers, nowMs: number): number | null {
  const retryAfter = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,9}$/.test(retryAfter)) {
    return Math.max(1, Number(retryAfter));
  }
  const moment = retryAfter === '' ? Number.NaN : Date.parse(retryAfter);
  if (!Number.isNaN(moment)) {
    return secondsUntil(moment, nowMs);
  }
  for (const prefix of ['x-ratelimit', 'ratelimit']) {
    const reset = headers.get(`${prefix}-reset`) ?? '';
    if (headers.get(`${prefix}-remaining`) === '0' && /^\d{1,12}$/.test(reset)) {
      return secondsUntil((Number(reset) + 1) * 1000, nowMs);
    }
  }
  return null;
}

function secondsUntil(moment: number, nowMs: number): number {
  return Math.max(1, Math.ceil((moment - nowMs) / 1000));
}
