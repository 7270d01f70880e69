import type { FakeRequest } from '../fakes/fake-server.js';

/** The token that a request presented, as its user stored it; null without one. */
export function presentedSecret(request: FakeRequest): string | null {
  const { authorization = '' } = request.headers;
  const basic = /^Basic (.+)$/i.exec(authorization)?.[1];
  return basic === undefined
    ? (/^(?:Bearer|token) (.+)$/i.exec(authorization)?.[1] ?? null)
    : Buffer.from(basic, 'base64').toString('utf8');
}
